"""A cluster of three primaries and three replicas: keys on all nodes, slots that move, a primary that dies."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
import redis
from filters import RESERVE, item_of, pairs
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from servers import Server

SLOTS = 16384
WINDOW = [*RESERVE["hamming"][:7], "100", "LENGTH", "256", "EXPIRE-AFTER", "3", "GENERATIONS"]
GROWING = [*RESERVE["hamming"][:7], "100", "LENGTH", "256"]


def known_names() -> dict[str, object]:
    """An option for redis-py, which from version 7 on refuses to send a command with two dots in its name."""
    try:
        from redis.commands.policies import StaticPolicyResolver
    except ImportError:
        return {}

    class Resolver(StaticPolicyResolver):
        def resolve(self, name: str) -> object:
            return None if name.startswith("near.") else super().resolve(name)

    return {"policy_resolver": Resolver()}


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for what a cluster comes to by itself."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except redis.RedisError:
            pass
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


class Cluster:
    """Servers 0, 1 and 2 are primaries of a third of the slots each; server 3 + i is a replica of server i."""

    def __init__(self, servers: list[Server]) -> None:
        self.servers = servers
        self.clients = [server.client() for server in servers]
        self.ids = [client.execute_command("CLUSTER MYID").decode() for client in self.clients]
        for i, client in enumerate(self.clients[:3]):
            client.execute_command("CLUSTER ADDSLOTSRANGE", SLOTS * i // 3, SLOTS * (i + 1) // 3 - 1)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", i + 1)
        for server in servers[1:]:
            self.clients[0].execute_command("CLUSTER MEET", "127.0.0.1", server.port)
        until(lambda: all(self.known(client) == 6 for client in self.clients))
        for i, client in enumerate(self.clients[3:]):
            client.execute_command("CLUSTER REPLICATE", self.ids[i])
        until(lambda: all(self.state(client) == "ok" for client in self.clients))
        until(lambda: all(client.info("replication")["master_link_status"] == "up" for client in self.clients[3:]))
        # What the client learns of the cluster must have replicas in it, or it never finds the one that takes over.
        until(lambda: all(self.replicas_known(client) == 3 for client in self.clients))

    @staticmethod
    def info(client: redis.Redis) -> dict[str, str]:
        text = client.execute_command("CLUSTER INFO")
        return text if isinstance(text, dict) else dict(line.split(":", 1) for line in text.decode().split())

    def known(self, client: redis.Redis) -> int:
        return int(self.info(client)["cluster_known_nodes"])

    def state(self, client: redis.Redis) -> str:
        return self.info(client)["cluster_state"]

    @staticmethod
    def replicas_known(client: redis.Redis) -> int:
        return sum("slave" in str(node.get("flags")) for node in client.execute_command("CLUSTER NODES").values())

    def client(self) -> RedisCluster:
        """A client that finds each key's node, and follows when that changes."""
        nodes = [ClusterNode("127.0.0.1", server.port) for server in self.servers if server.is_up()]
        return RedisCluster(startup_nodes=nodes, socket_timeout=60, **known_names())

    def owner(self, key: str) -> int:
        """Which of the servers had the key's slot at first."""
        slot = self.clients[0].execute_command("CLUSTER KEYSLOT", key)
        return next(i for i in range(3) if slot < SLOTS * (i + 1) // 3)

    def move(self, slot: int, source: int, target: int) -> int:
        """Moves a slot with its keys, as an operator's tool does; says how many keys there were."""
        here, there = self.clients[source], self.clients[target]
        there.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", self.ids[source])
        here.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", self.ids[target])
        moved = 0
        while keys := here.execute_command("CLUSTER GETKEYSINSLOT", slot, 3):
            here.execute_command("MIGRATE", "127.0.0.1", self.servers[target].port, "", 0, 60_000, "KEYS", *keys)
            moved += len(keys)
        for client in (there, here, self.clients[3 - source - target]):
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", self.ids[target])
        return moved


@pytest.fixture
def cluster(start) -> Cluster:
    return Cluster([start(cluster=True, **{"cluster-replica-validity-factor": 0}) for _ in range(6)])


def fill(client: RedisCluster, cluster: Cluster) -> dict[str, list[bytes]]:
    """Keys of several kinds on every node, some of which share a slot, and what each of them holds."""
    draw = random.Random(41)
    held = {}
    for i in range(24):
        name, options = [
            ("hamming", RESERVE["hamming"]),
            ("jaccard", RESERVE["jaccard"]),
            ("hamming", WINDOW),
            ("hamming", GROWING),
            ("cosine", RESERVE["cosine"]),
            ("hamming-exact", RESERVE["hamming-exact"]),
        ][i % 6]
        key = f"{{tag{i // 6}}}:{name}:{i}" if i % 2 else f"{name}:{i}"
        client.execute_command("NEAR.RESERVE", key, *options)
        items = [item_of(name, draw) for _ in range(350 if options in (WINDOW, GROWING) else 60)]
        client.execute_command("NEAR.MADD", key, *items)
        held[key] = items[-250:] if options is WINDOW else items
    assert {cluster.owner(key) for key in held} == {0, 1, 2}, "keys are on all nodes"
    return held


def answers(client: RedisCluster, held: dict[str, list[bytes]]) -> dict[str, list[object]]:
    """All that every key answers, to what was added and to as much that was not."""
    draw = random.Random(42)
    told = {}
    for key, items in held.items():
        name = key.split(":")[-2]
        strangers = [item_of(name, draw) for _ in items]
        told[key] = [
            client.execute_command("NEAR.MEXISTS", key, *items, *strangers),
            client.execute_command("NEAR.CARD", key),
            pairs(client.execute_command("NEAR.INFO", key)),
        ]
        assert told[key][0][: len(items)] == [1] * len(items), key
    return told


def test_slots_move_while_their_keys_answer(cluster: Cluster) -> None:
    client = cluster.client()
    held = fill(client, cluster)
    before = answers(client, held)
    slots = {key: client.keyslot(key) for key in held}
    wrong: list[object] = []
    asked = 0
    done = threading.Event()

    def ask() -> None:
        nonlocal asked
        mine, draw = cluster.client(), random.Random(43)
        try:
            while not done.is_set():
                key = draw.choice(list(held))
                if mine.execute_command("NEAR.EXISTS", key, draw.choice(held[key])) != 1:
                    wrong.append(key)
                asked += 1
        except Exception as error:
            wrong.append(error)
        finally:
            mine.close()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    moved = 0
    for slot in sorted(set(slots.values())):
        source = next(i for i in range(3) if slot < SLOTS * (i + 1) // 3)
        moved += cluster.move(slot, source, (source + 1) % 3)
    time.sleep(0.3)
    done.set()
    asking.join(timeout=60)
    assert not wrong and asked > 20, (wrong, asked)
    assert moved == len(held)
    assert answers(cluster.client(), held) == before
    for i, replica in enumerate(cluster.clients[3:]):
        # Replicas follow what was moved to their primary and away from it.
        until(lambda: cluster.clients[i].wait(1, 1000) == 1)
        assert replica.execute_command("DEBUG", "DIGEST") == cluster.clients[i].execute_command("DEBUG", "DIGEST")


def test_a_replica_takes_over_from_a_primary_that_dies(cluster: Cluster) -> None:
    client = cluster.client()
    held = fill(client, cluster)
    draw = random.Random(44)
    # The last ones are waited for, which is what makes them outlive the primary.
    for key, items in held.items():
        name = key.split(":")[-2]
        more = [item_of(name, draw) for _ in range(5)]
        client.execute_command("NEAR.MADD", key, *more)
        held[key] = (items + more)[-250:] if len(items) == 250 else items + more
    for primary in cluster.clients[:3]:
        assert primary.wait(1, 60_000) == 1
    before = answers(client, held)
    killed = 1
    assert any(cluster.owner(key) == killed for key in held)
    cluster.servers[killed].kill()
    others = [i for i in range(6) if i != killed]
    until(lambda: cluster.clients[3 + killed].info("replication")["role"] == "master")
    until(lambda: all(cluster.state(cluster.clients[i]) == "ok" for i in others))
    client = cluster.client()
    assert answers(client, held) == before
    # It goes on, and the old primary comes back as a replica that is equal.
    for key in held:
        name = key.split(":")[-2]
        client.execute_command("NEAR.ADD", key, item_of(name, draw))
    cluster.servers[killed].start()
    old, new = cluster.servers[killed].client(), cluster.clients[3 + killed]
    until(lambda: old.info("replication").get("master_link_status") == "up" and new.wait(1, 1000) == 1)
    assert old.execute_command("DEBUG", "DIGEST") == new.execute_command("DEBUG", "DIGEST")
    assert old.dbsize() > 0


def test_filters_of_one_slot_merge(cluster: Cluster) -> None:
    client = cluster.client()
    draw = random.Random(45)
    items = [item_of("hamming", draw) for _ in range(60)]
    for tag in ("", "{seen}"):
        for day in range(3):
            client.execute_command("NEAR.RESERVE", f"{tag}day:{day}", *RESERVE["hamming"])
            client.execute_command("NEAR.MADD", f"{tag}day:{day}", *items[20 * day : 20 * day + 20])
    assert client.execute_command("NEAR.MERGE", "{seen}all", *(f"{{seen}}day:{day}" for day in range(3))) in (
        b"OK",
        True,
    )
    assert client.execute_command("NEAR.MEXISTS", "{seen}all", *items) == [1] * 60
    # The client sees it before it sends; so does the server.
    with pytest.raises(RedisClusterException, match="same key slot"):
        client.execute_command("NEAR.MERGE", "all", *(f"day:{day}" for day in range(3)))
    for node in cluster.clients[:3]:
        with pytest.raises(redis.ResponseError, match="same slot"):
            node.execute_command("NEAR.MERGE", "all", *(f"day:{day}" for day in range(3)))
    assert client.exists("all") == 0


def test_slots_move_atomically_where_the_server_can(cluster: Cluster) -> None:
    """Valkey 9 sends the slots' keys as commands, which must pass the limit of the node that they come to."""
    here, there = cluster.clients[:2]
    if int(here.info("server").get("valkey_version", "0").split(".")[0]) < 9:
        pytest.skip("this server has no CLUSTER MIGRATESLOTS")
    client = cluster.client()
    held = fill(client, cluster)
    before = answers(client, held)
    there.config_set("near.memory-limit", 1)
    mine = [key for key in held if cluster.owner(key) == 0]
    assert mine
    # All but slot 0, which no key is in: a node without slots would become a replica.
    here.execute_command("CLUSTER MIGRATESLOTS", "SLOTSRANGE", 1, SLOTS // 3 - 1, "NODE", cluster.ids[1])
    until(lambda: here.dbsize() == 0)
    assert there.dbsize() >= len(mine)
    assert answers(cluster.client(), held) == before
