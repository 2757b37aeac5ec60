"""Runs the steps of ``quotahost report`` and ``replay`` and shows on standard error which one runs, and how far it is.

The history is read by ``quotahost.pipeline.history.collect``, and drawn by ``quotahost.report.page`` or ``.pictures``.
They are imported when they are needed, since the other commands do without the extra ``spark``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from quotahost.replay.values import Replay
from quotahost.report.values import Question, Report


class _Count(TextColumn):
    """How much of a step is done: the curves drawn so far or, while Spark reads, the tasks that it has done.

    ``of_spark`` answers how many tasks are done and how many there are; it is asked at each refresh.
    """

    def __init__(self) -> None:
        super().__init__("")
        self.of_spark: Callable[[], tuple[int, int]] = lambda: (0, 0)

    def render(self, task: Task) -> Text:
        if task.total is not None:
            return Text(f"{task.completed:.0f} of {task.total:.0f}")
        try:
            done, there = self.of_spark()
        except Exception:  # a number to look at must not end the work
            return Text()
        return Text(f"{done:,} of {there:,} tasks" if there else "")


class Work(Progress):
    """One line that changes with the step; where standard error is no terminal, a line of text for each step."""

    def __init__(self) -> None:
        self._count = _Count()
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(20),
            self._count,
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
            refresh_per_second=4,
        )
        self._step = self.add_task("", total=None)

    def collect(self, question: Question) -> Report:
        """Read the history; a Spark of its own is started for that.

        Raises:
            QuotahostError: there is nothing to draw, or no Spark to read it with.
        """
        from quotahost.pipeline.history.collect import collect

        return collect(self._spark("quotahost report"), question, self.begin)

    def everything(self, question: Question) -> Report:
        """Read all volumes of the history.

        Raises:
            QuotahostError: there are no readings, or no Spark to read them with.
        """
        from quotahost.pipeline.history.everything import everything

        return everything(self._spark("quotahost replay"), question, self.begin)

    def _spark(self, name: str) -> Any:
        from quotahost.pipeline.spark.session import start, tasks

        self.begin("Starting Spark")
        spark = start(name)
        # Rich's own thread asks for the number, while this one waits for Spark.
        self._count.of_spark = lambda: tasks(spark)
        return spark

    def draw(self, found: Report, out: Path, as_page: bool) -> str:
        """Write the page or the pictures, and return a text for the operator that names what was written.

        Raises:
            OSError: they can't be written.
        """
        from quotahost.report.page import page
        from quotahost.report.pictures import pictures

        def drawn(count: int) -> None:
            self.update(self._step, completed=count)

        self.begin("Drawing")
        self.update(self._step, total=len(found.curves), completed=0)
        if as_page:
            out.write_text(page(found, drawn), encoding="utf-8")
            return str(out)
        return f"{len(pictures(found, out, drawn))} pictures in {out}"

    def draw_replay(self, played: Replay, name: str, out: Path) -> None:
        """Write the page of a replay of the properties file of that name.

        Raises:
            OSError: it can't be written.
        """
        from quotahost.replay.page import MOST, page

        self.begin("Drawing")
        total = min(MOST, len(played.where)) + min(MOST, len(played.volumes))
        self.update(self._step, total=total, completed=0)
        out.write_text(page(played, name, lambda count: self.update(self._step, completed=count)), encoding="utf-8")

    def begin(self, step: str) -> None:
        """Show that this step begins."""
        self.update(self._step, description=step)
        if not self.console.is_terminal:
            self.console.print(Text(f"{step} ..."), soft_wrap=True)
