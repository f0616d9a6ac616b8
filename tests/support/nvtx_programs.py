"""Random programs that push ranges and launch work, as plain tuples and as frames."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from nsightpy.frames import Frame
from tests.support.frames import frame

Range = tuple[int, int, int, int, int, str, str, str]  # start, end, pid, tid, end tid, name, ...
Operation = tuple[int, int, int, int, int]  # start, end, pid, device, correlation
Call = tuple[int, int, int, int, int, int]  # start, end, pid, tid, correlation, class


@dataclass
class Case:
    """Threads that push, pop and launch, as a program would."""

    ranges: list[Range] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def frames(self) -> tuple[Frame, Frame, Frame]:
        """The ranges, the operations, and the calls."""
        return (
            frame("start_ns end_ns pid tid end_tid name domain style", self.ranges),
            frame("start_ns end_ns pid device correlation_id", self.operations),
            frame("start_ns end_ns pid tid correlation_id event_class", self.calls),
        )


def program(seed: int, steps: int = 40) -> Case:
    """A random program; every thread has a stack of ranges per domain, and calls in between."""
    random, case, number = Random(seed), Case(), {1: 0, 2: 0}
    for pid, tid in ((1, 1), (1, 2), (2, 1)):
        now = random.randrange(5)
        stacks: dict[str, list[tuple[int, str]]] = {"": [], "NCCL": []}
        for _ in range(random.randrange(steps)):
            now += random.randrange(3)
            domain = random.choice(["", "", "NCCL"])
            stack, action = stacks[domain], random.random()
            if action < 0.35:
                stack.append((now, random.choice("abc")))
            elif action < 0.6 and stack:
                start, name = stack.pop()
                case.ranges.append((start, now, pid, tid, tid, name, domain, "PushPop"))
            elif action < 0.7:
                other = random.choice([tid, tid, 9])
                end = now + random.randrange(12)
                case.ranges.append((now, end, pid, tid, other, "s", domain, "StartEnd"))
            else:
                now += 1
                number[pid] += 1
                end = now + random.randrange(1, 4)
                case.calls.append((now, end, pid, tid, number[pid], random.choice([0, 1])))
                for _ in range(random.choice([0, 1, 1, 1, 3])):
                    begin = random.randrange(60)
                    operation = (begin, begin + random.randrange(9), pid, random.randrange(2))
                    case.operations.append((*operation, number[pid]))
                now = end + 1
        for domain, stack in stacks.items():
            while stack:
                now += random.randrange(2)
                start, name = stack.pop()
                case.ranges.append((start, now, pid, tid, tid, name, domain, "PushPop"))
    case.operations += [(3, 9, 1, 0, 0), (4, 7, 1, 0, 10_000)]
    case.calls.sort(key=lambda call: call[0])
    random.shuffle(case.operations)
    case.ranges.sort(key=lambda one: (one[0], -one[1]))
    return case


PROGRAMS = st.integers(0, 10**6).map(program).filter(lambda case: bool(case.ranges))
