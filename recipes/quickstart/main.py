"""The memory loop in fifteen lines, and a model with a field of its own."""

import omoide
from omoide import StringField
from omoide.recipes import DefaultMemory, SubconsciousMemory


class ProjectMemory(DefaultMemory):  # its own keyspace, every field of DefaultMemory
    project = StringField(default="")


omoide.connect()  # OMOIDE_URL, else an embedded server that persists
ProjectMemory(agent_id="ada", content="Deploys are blue-green, on Tuesdays", project="web").save()
ProjectMemory(agent_id="ada", content="The staging database listens on port 5433", project="web").save()

memory = SubconsciousMemory(agent_id="ada", model=ProjectMemory)
messages, result = memory.inject_context([{"role": "user", "content": "How do we deploy?"}])
print(result.formatted)

reply = "You deploy blue-green, on Tuesdays. The next one is on the 14th and Mia is on call."
print("stored:", [bool(outcome) for outcome in memory.extract_memories(reply)])
print("learnt:", dict(memory.report_outcomes(result, "acted").states))

known = ProjectMemory.query.get(agent_id="ada", memory_id=result.ids[0])
print(f"{known.project}: {known.content} (confidence {known.confidence:.2f})")
print("next door:", ProjectMemory.query.filter(agent_id="bob").count())
