"""What Corpus knows of a minion's guest, as a pillar: of that guest's minion only.

The server that keeps this master's keys keeps a file of each guest that follows it. A minion without one gets nothing, and does
nothing then: it looks for this very key.
"""
import json
import os


def ext_pillar(minion_id, pillar, folder):
    del pillar
    if not minion_id or "/" in minion_id or minion_id.startswith("."):
        return {}
    try:
        with open(os.path.join(folder, minion_id + ".json"), encoding="utf-8") as file:
            return {"corpus": json.load(file)}
    except FileNotFoundError:
        return {}
