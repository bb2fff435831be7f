"""An agent with memory tools whose facts and episodes outlive its sessions."""

import os

import omoide
from omoide.recipes import LongTermMemory, ThreadMemory, maintain, tools_of

omoide.connect(postgres=os.environ.get("OMOIDE_POSTGRES", "embedded"))

# ---- monday: what the model of an agent calls -----------------------------------------------------

monday = LongTermMemory("ada", session_id="monday")
tools = {tool.name: tool for tool in tools_of(monday)}  # what a framework registers

print(tools["retain_memory"](content="Mia is on call in May", key="team.on_call"))
print(tools["retain_memory"](content="Ben is on call in May", key="team.on_call", importance=0.9))
print(tools["retain_memory"](content="Deploys are blue-green", importance=7))  # told what was wrong

turn = ("When do we deploy next?", "On Tuesday at ten, blue-green.")
ThreadMemory("monday", resource_id="ada").append(
    [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
)
print("episode:", monday.retain_turn(*turn).stored, monday.retain_turn(*turn).reason)

# ---- tuesday: another session, another process perhaps ----------------------------------------------

tuesday = LongTermMemory("ada", session_id="tuesday")
block = tuesday.recall("Who is on call, and when is the next deploy?")
print(block.formatted, f"\nanswered by {block.metadata['store']}")

tools = {tool.name: tool for tool in tools_of(tuesday)}
shown = tools["recall_memory"](query="who is on call?")["memories"]
fact = next(one for one in shown if one["key"] == "team.on_call")
print(tools["edit_memory"](memory_id=fact["memory_id"], action="update", content="Zoe is on call in May"))
print(tools["edit_memory"](memory_id="made-up", action="forget"))

# ---- and around it ------------------------------------------------------------------------------------

ThreadMemory.delete_sessions("ada")
print("memories left:", tuesday.records().count(), "next door:", LongTermMemory("bob").records().count())
print("due for upkeep:", dict(maintain(dry_run=True).counts))
