"""Who may run what: access control by category, command and key, and what the server knows of each command."""

from __future__ import annotations

import random

import pytest
import redis
from filters import RESERVE, item_of, pairs
from redis.exceptions import ExecAbortError, NoPermissionError
from servers import Server

# Flags of every command, and which of its arguments are keys when it is called with these.
COMMANDS = {
    "NEAR.RESERVE": ({"write", "denyoom"}, ["k", *RESERVE["jaccard"]], ["k"]),
    "NEAR.INSERT": ({"write", "denyoom"}, ["k", *RESERVE["jaccard"], "ITEMS", "item"], ["k"]),
    "NEAR.ADD": ({"write", "denyoom", "fast"}, ["k", "item"], ["k"]),
    "NEAR.MADD": ({"write", "denyoom"}, ["k", "item", "item"], ["k"]),
    "NEAR.ADDKEYS": ({"write", "denyoom"}, ["k", "HITS", "keys"], ["k"]),
    "NEAR.MERGE": ({"write", "denyoom"}, ["k", "a", "b", "c"], ["k", "a", "b", "c"]),
    "NEAR.WINDOW": ({"write", "denyoom"}, ["k", "60", "AT", "1", "ROTATE", "0"], ["k"]),
    "NEAR.LOAD": ({"write", "denyoom"}, ["k", "0", "chunk", "REPLACE"], ["k"]),
    "NEAR.EXISTS": ({"readonly", "fast"}, ["k", "item"], ["k"]),
    "NEAR.MEXISTS": ({"readonly"}, ["k", "item", "item"], ["k"]),
    "NEAR.HITS": ({"readonly", "fast"}, ["k", "item"], ["k"]),
    "NEAR.EXISTSKEYS": ({"readonly"}, ["k", "HITS", "keys"], ["k"]),
    "NEAR.CARD": ({"readonly", "fast"}, ["k"], ["k"]),
    "NEAR.INFO": ({"readonly"}, ["k", "items"], ["k"]),
    "NEAR.SPEC": ({"readonly", "fast"}, ["k"], ["k"]),
    "NEAR.DUMP": ({"readonly"}, ["k", "0", "COUNT", "10"], ["k"]),
    "NEAR.INDEX.RESERVE": ({"write", "denyoom"}, ["k", *RESERVE["jaccard"]], ["k"]),
    "NEAR.INDEX.ADD": ({"write", "denyoom"}, ["k", "id", "item"], ["k"]),
    "NEAR.INDEX.REM": ({"write", "fast"}, ["k", "id"], ["k"]),
    "NEAR.INDEX.LOAD": ({"write", "denyoom"}, ["k", "0", "chunk"], ["k"]),
    "NEAR.INDEX.DUMP": ({"readonly"}, ["k", "0", "COUNT", "10"], ["k"]),
    "NEAR.INDEX.SEARCH": ({"readonly"}, ["k", "item", "K", "3"], ["k"]),
    "NEAR.INDEX.GET": ({"readonly", "fast"}, ["k", "id"], ["k"]),
    "NEAR.INDEX.CARD": ({"readonly", "fast"}, ["k"], ["k"]),
    "NEAR.INDEX.INFO": ({"readonly", "fast"}, ["k", "items"], ["k"]),
}
# Commands for clients that may know a filter's seed.
TRUSTED = ["NEAR.ADDKEYS", "NEAR.HITS", "NEAR.EXISTSKEYS", "NEAR.SPEC", "NEAR.DUMP", "NEAR.INDEX.DUMP"]
WRITES = [name for name, (flags, _, _) in COMMANDS.items() if "write" in flags]
READS = [name for name in COMMANDS if name not in WRITES]


def has_categories(client: redis.Redis) -> bool:
    """Redis 7.0 puts no command of any module into a category, so rights are given there by the names of commands."""
    server = client.info("server")
    return "valkey_version" in server or tuple(map(int, server["redis_version"].split(".")[:2])) >= (7, 2)


def as_user(server: Server, client: redis.Redis, *rules: str) -> redis.Redis:
    """A client of a user with just these rights."""
    client.execute_command("ACL", "SETUSER", "someone", "reset", "on", ">secret", *rules)
    return server.client(username="someone", password="secret")


@pytest.fixture
def someone(shared_server: Server, client: redis.Redis):
    """Makes clients of a user with given rights; the user is gone after the test."""
    client.execute_command("NEAR.RESERVE", "seen:a", *RESERVE["hamming"])
    client.execute_command("NEAR.RESERVE", "seen:b", *RESERVE["hamming"])
    client.execute_command("NEAR.RESERVE", "other", *RESERVE["hamming"])
    clients = []

    def make(*rules: str) -> redis.Redis:
        clients.append(as_user(shared_server, client, *rules))
        return clients[-1]

    yield make
    for each in clients:
        each.close()
    client.execute_command("ACL", "DELUSER", "someone")


def may(client: redis.Redis, name: str, key: str = "seen:a") -> bool:
    """Whether the user may run a command on a key; what the command itself says does not matter."""
    arguments = [key if argument in ("k", "a", "b", "c") else argument for argument in COMMANDS[name][1]]
    try:
        client.execute_command(name, *arguments)
    except NoPermissionError:
        return False
    except redis.ResponseError:
        pass
    return True


def test_readers_read_and_writers_write(someone, client: redis.Redis) -> None:
    if not has_categories(client):
        pytest.skip("this server puts commands of modules into no category")
    reader = someone("+@read", "~*")
    assert [name for name in COMMANDS if may(reader, name)] == [name for name in READS if name not in TRUSTED]
    writer = someone("+@write", "~*")
    assert [name for name in COMMANDS if may(writer, name)] == [name for name in WRITES if name not in TRUSTED]
    neither = someone("+@all", "-@read", "-@write", "~*")
    assert [name for name in COMMANDS if may(neither, name)] == TRUSTED
    harmless = someone("+@all", "-@dangerous", "~*")
    assert [name for name in COMMANDS if not may(harmless, name)] == TRUSTED
    fast = someone("+@fast", "~*")
    assert {name for name in COMMANDS if may(fast, name)} == {
        name for name, (flags, _, _) in COMMANDS.items() if "fast" in flags and name not in TRUSTED
    }


def test_single_commands_are_given_and_taken(someone) -> None:
    one = someone("+near.add", "+near.exists", "~*")
    assert [name for name in COMMANDS if may(one, name)] == ["NEAR.ADD", "NEAR.EXISTS"]
    without = someone("+@all", "-near.load", "~*")
    assert [name for name in COMMANDS if not may(without, name)] == ["NEAR.LOAD"]


def test_keys_are_guarded_by_their_names(someone) -> None:
    some = someone("+@all", "~seen:*")
    for name in COMMANDS:
        assert may(some, name, "seen:a") and not may(some, name, "other"), name
    item = item_of("hamming", random.Random(51))
    assert some.execute_command("NEAR.ADD", "seen:a", item) == 1
    for keys in (["other", "seen:a"], ["seen:a", "other"], ["seen:a", "seen:b", "other"]):
        with pytest.raises(NoPermissionError):
            some.execute_command("NEAR.MERGE", *keys)
    assert some.execute_command("NEAR.MERGE", "seen:b", "seen:a") == b"OK"


def test_reading_and_writing_rights_of_a_key_differ(someone) -> None:
    half = someone("+@all", "%R~other", "%RW~seen:*")
    for name in COMMANDS:
        assert may(half, name, "other") == (name in READS), name
    assert half.execute_command("NEAR.MERGE", "seen:a", "other") == b"OK"
    with pytest.raises(NoPermissionError):
        half.execute_command("NEAR.MERGE", "other", "seen:a")


def test_commands_are_in_categories_of_their_own_where_modules_may_have_some(someone, client: redis.Redis) -> None:
    if b"near" not in client.execute_command("ACL", "CAT"):
        with pytest.raises(redis.ResponseError):
            client.execute_command("ACL", "CAT", "near")
        pytest.skip("this server lets modules add no categories")
    # Valkey 8 lists no command of a module under a category, though rights go by it.
    lists_none = str(client.info("server").get("valkey_version", "")).startswith("8.")
    for category, commands in (("near", set(COMMANDS) - set(TRUSTED)), ("near-trusted", set(TRUSTED))):
        listed = {name.decode().upper() for name in client.execute_command("ACL", "CAT", category)}
        assert listed == (set() if lists_none else commands)
        ours = someone(f"+@{category}", "~*")
        assert {name for name in COMMANDS if may(ours, name)} == commands
    with pytest.raises(NoPermissionError):
        ours.get("seen:a")


def test_transactions_and_scripts_have_the_user_s_rights(someone) -> None:
    reader = someone("+near.card", "+@transaction", "+eval", "~*")
    with reader.pipeline(transaction=True) as pipe:
        pipe.execute_command("NEAR.CARD", "seen:a")
        pipe.execute_command("NEAR.ADD", "seen:a", b"x" * 32)
        with pytest.raises((NoPermissionError, ExecAbortError)):
            pipe.execute()
    assert reader.eval("return redis.call('NEAR.CARD', KEYS[1])", 1, "seen:a") == 0
    with pytest.raises(redis.ResponseError, match="(?i)permission|can't run"):
        reader.eval("return redis.call('NEAR.ADD', KEYS[1], ARGV[1])", 1, "seen:a", b"x" * 32)
    assert reader.execute_command("NEAR.CARD", "seen:a") == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_the_server_knows_each_command(client: redis.Redis, name: str) -> None:
    flags, arguments, keys = COMMANDS[name]
    [[told_name, arity, told_flags, *positions, categories, _, _, _]] = client.execute_command("COMMAND INFO", name)
    assert text(told_name).upper() == name and abs(arity) <= len(arguments) + 1
    assert set(map(text, told_flags)) == flags | {"module"}
    assert positions == [1, -1 if name == "NEAR.MERGE" else 1, 1]
    assert [text(key) for key in client.execute_command("COMMAND GETKEYS", name, *arguments)] == keys
    expected = (
        set()
        if not has_categories(client)
        else {"@dangerous"}
        if name in TRUSTED
        else {"@write" if "write" in flags else "@read", "@fast" if "fast" in flags else "@slow"}
    )
    assert expected <= set(map(text, categories))
    assert name not in TRUSTED or not {"@read", "@write", "@fast", "@near"} & set(map(text, categories))
    [docs] = map(pairs, pairs(client.execute_command("COMMAND DOCS", name)).values())
    assert docs["module"] == b"near" and len(docs["summary"]) > 20 and docs["complexity"].startswith(b"O(")


def text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def test_the_rights_to_keys_are_told(client: redis.Redis) -> None:
    def rights(*command: str) -> dict[str, set[str]]:
        return {
            text(key): {text(flag) for flag in flags}
            for key, flags in client.execute_command("COMMAND GETKEYSANDFLAGS", *command)
        }

    assert rights("NEAR.EXISTS", "k", "item") == {"k": {"RO", "access"}}
    assert rights("NEAR.ADD", "k", "item") == {"k": {"RW", "access", "insert"}}
    assert rights("NEAR.MERGE", "to", "from") == {"to": {"RW", "update"}, "from": {"RO", "access"}}
