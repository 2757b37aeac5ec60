"""Draws the first part's picture: each client's rate over time, against its quota."""

from itertools import pairwise
from pathlib import Path

from matplotlib import pyplot

from demo.pictures import save
from demo.quotas.scenario import Client
from harness.clients.load import KAFKA_WINDOW

COLOURS = {"gold": "#c79100", "bronze": "#8d5524", "reader": "#1f77b4"}


def draw(all_clients: list[Client], end: float, file: Path) -> None:
    """Draws a PNG: each client's rate as the mean over Kafka's window of 11 s, and its quota as dashed steps.

    Args:
        all_clients: the clients, with their meters and quotas.
        end: the monotonic moment at which the picture ends.
        file: the PNG file.
    """
    figure, axes = pyplot.subplots(figsize=(10, 5), layout="constrained")
    zero = min(client.load.meter.started for client in all_clients)
    for client in all_clients:
        meter = client.load.meter
        moments = [zero + second for second in range(1, int(end - zero))]
        rates = [(meter.total_at(m) - meter.total_at(m - KAFKA_WINDOW)) / KAFKA_WINDOW / 1e6 for m in moments]
        colour = COLOURS[client.user]
        axes.plot([m - zero for m in moments], rates, color=colour, label=f"{client.user} ({client.quota_type})")
        steps = [*((moment - zero, quota / 1e6) for moment, quota, _ in client.quotas), (end - zero, 0.0)]
        for (start, quota), (stop, _) in pairwise(steps):
            axes.hlines(quota, start, stop, colors=colour, linestyles="dashed", linewidth=1)
    axes.set(
        xlabel="seconds",
        ylabel="MB/s, mean of the last 11 s",
        ylim=(0, None),
        title="Achieved rates and quotas (dashed)",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(frameon=False, loc="outside lower center", ncols=len(all_clients))
    save(figure, file)
