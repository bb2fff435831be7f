"""Facts that change: what is true now, what was true then, and who is to be believed last."""

from datetime import UTC, datetime

import omoide
from omoide import ConflictError, ContextAssembler, DatetimeField, StringField, ValidityField
from omoide.recipes import DefaultMemory


class Fact(DefaultMemory):
    """A statement about one subject; statements about the same subject are versions of each other."""

    subject = StringField(null=True, index=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="subject")


def day(month: int, number: int) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


omoide.connect()  # OMOIDE_URL, else an embedded server that persists

# Told in the order in which an agent may hear of it: the oldest last.
heard = [
    (day(6, 1), "Ada works at Initech"),
    (day(9, 1), "Ada works at Globex"),
    (day(2, 1), "Ada works at Acme"),
]
for start, text in heard:
    Fact(agent_id="ada", subject="employer", content=text, valid_from=start).save()

recall = ContextAssembler(Fact, track=False)
for name, instant in (
    ("now", None),
    ("in July", day(7, 1)),
    ("in March", day(3, 1)),
    ("in January", day(1, 1)),
):
    known = recall.assemble("Where does Ada work?", agent_id="ada", as_of=instant).records
    print(f"{name + ':':12}", known[0].content if known else "not known")

# A correction names what it replaces, so that two corrections cannot both win.
office = Fact(agent_id="ada", content="The office is on floor 3", valid_from=day(1, 1))
office.save()
Fact(agent_id="ada", content="The office is on floor 5", valid_from=day(8, 1)).save(
    supersedes=office.memory_id
)
try:
    Fact(agent_id="ada", content="The office is on floor 7").save(supersedes=office.memory_id)
except ConflictError as error:
    print("refused:    ", error.reason)

print("history:")
for fact in Fact.query.filter(agent_id="ada", subject="employer").history().order_by("valid_from").all():
    start, end = fact.validity
    print(f"  {start:%b %d} to {end:%b %d}" if end else f"  {start:%b %d} on    ", fact.content)

print("most recent:", recall.assemble(order="recent", agent_id="ada", max_items=1).records[0].content)
