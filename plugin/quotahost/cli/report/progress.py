"""The work of ``quotahost report``, and its progress on standard error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from quotahost.report.values import Question, Report


class _Tasks(TextColumn):
    """Asks Spark how far it is each time that the line is drawn."""

    def __init__(self) -> None:
        super().__init__("")
        self.count: Callable[[], tuple[int, int]] | None = None

    def render(self, task: Task) -> Text:
        if task.total is not None:
            return Text(f"{task.completed:.0f} of {task.total:.0f}")
        try:
            done, there = self.count() if self.count else (0, 0)
        except Exception:  # a number to look at must not end the work
            return Text()
        return Text(f"{done:,} of {there:,} tasks" if there else "")


class Work:
    """One line that says what is done now; lines of text where nobody looks at a terminal."""

    def __init__(self) -> None:
        self._screen, self._tasks = Console(stderr=True, highlight=False), _Tasks()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(20),
            self._tasks,
        )
        self._line = Progress(
            *columns, TimeElapsedColumn(), console=self._screen, transient=True, refresh_per_second=4
        )
        self._task = self._line.add_task("", total=None)

    def __enter__(self) -> Self:
        self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line away."""
        self._line.stop()

    def collect(self, question: Question) -> Report:
        """Read the history; a Spark of its own is started for that.

        Raises:
            QuotahostError: there is nothing to draw, or no Spark to read it with.
        """
        # Not at the top: other commands do without the extra.
        from quotahost.pipeline.history.collect import collect
        from quotahost.pipeline.spark.command import start, tasks

        self._tell("Starting Spark")
        spark = start("quotahost report")
        self._tasks.count = lambda: tasks(spark)
        return collect(spark, question, self._tell)

    def write_page(self, found: Report, file: Path) -> str:
        """Write the page; answers what was written."""
        from quotahost.report.page import page

        file.write_text(page(found, self._drawing(found)), encoding="utf-8")
        return str(file)

    def write_pictures(self, found: Report, folder: Path) -> str:
        """Write the pictures; answers what was written."""
        from quotahost.report.pictures import pictures

        return f"{len(pictures(found, folder, self._drawing(found)))} pictures in {folder}"

    def _tell(self, step: str) -> None:
        self._line.update(self._task, description=step)
        if not self._screen.is_terminal:
            self._screen.print(Text(f"{step} ..."), soft_wrap=True)

    def _drawing(self, found: Report) -> Callable[[int], None]:
        self._tell("Drawing")
        self._line.update(self._task, total=len(found.curves), completed=0)
        return lambda count: self._line.update(self._task, completed=count)
