"""What a column and a schema of a frame are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, kind ("int", "float" or "label"), unit, meaning, value for "not known"."""

    name: str
    kind: str
    unit: str
    meaning: str
    missing: int | float | str = 0


@dataclass(frozen=True, slots=True)
class Schema:
    """The fixed columns of a public frame, in order; `derived` are given where they are named."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    derived: tuple[Column, ...] = ()

    def __getitem__(self, name: str) -> Column:
        return next(column for column in (*self.columns, *self.derived) if column.name == name)

    def __contains__(self, name: str) -> bool:
        return any(column.name == name for column in (*self.columns, *self.derived))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def schema(name: str, meaning: str, *columns: Column, derived: tuple[Column, ...] = ()) -> Schema:
    """The schema of a frame with these columns."""
    return Schema(name, meaning, columns, derived)


def int_column(name: str, unit: str, meaning: str, missing: int = 0) -> Column:
    return Column(name, "int", unit, meaning, missing)


def float_column(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "float", unit, meaning, float("nan"))


def label_column(name: str, meaning: str, missing: str = "") -> Column:
    return Column(name, "label", "", meaning, missing)


# What many frames begin with.
SPAN = (
    int_column("start_ns", "ns", "start, in the report's own time"),
    int_column("end_ns", "ns", "end, in the report's own time"),
)
PLACE = (
    int_column("pid", "", "process that owns the operation; 0 where the export does not say"),
    int_column("device", "", "CUDA device ordinal inside the process"),
    int_column("context", "", "CUDA context; -1 = not known", -1),
    int_column("stream", "", "CUDA stream"),
    int_column("correlation_id", "", "the launching API call, unique inside one process; 0 = none"),
)
CALL = (*SPAN, int_column("pid", "", "calling process"), int_column("tid", "", "calling thread"))
