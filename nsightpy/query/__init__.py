"""How commands ask: their declaration, and questions about reports and the part that is meant."""

from nsightpy.query.engine import (
    Parts as Parts,
    Question as Question,
    Work as Work,
    answer as answer,
    answers as answers,
)
from nsightpy.query.options import (
    NAME_COLUMNS as NAME_COLUMNS,
    Common as Common,
    Communication as Communication,
    NameStyle as NameStyle,
    Option as Option,
    Top as Top,
)
from nsightpy.query.request import Request as Request
from nsightpy.query.scope import Scope as Scope
from nsightpy.reports.system import SystemReport as SystemReport
