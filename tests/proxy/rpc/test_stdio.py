from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from proxy.rpc import ChildTransport, Launch, stdio
from proxy.rpc.processes import find_process
from tests.support.heard import all_heard, next_heard
from tests.support.patience import NEVER, PATIENCE

ENV = {"PATH": os.environ["PATH"]}


def python(code: str) -> Launch:
    return Launch([sys.executable, "-c", code], ENV)


ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


async def test_lines_go_in_and_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", NEVER)
    transport = await ChildTransport.start(python(ECHO))
    await transport.send(b'{"id":1}\n')
    assert await next_heard(transport) == b'{"id":1}\n'
    await transport.close()
    assert transport.describe_end() == "exit status 0"


async def test_a_line_of_eight_megabytes_comes_whole() -> None:
    transport = await ChildTransport.start(python("print('x' * 2**23)"))
    assert len(await all_heard(transport)) == 2**23 + 1
    await transport.close()


async def test_the_end_of_the_child_is_the_end_of_the_stream_and_says_why() -> None:
    code = "import sys; print('why it failed', file=sys.stderr); sys.exit(3)"
    transport = await ChildTransport.start(python(code))
    assert await next_heard(transport) == b""
    await transport.close()
    assert transport.describe_end() == "exit status 3: why it failed"


async def test_a_flood_on_stderr_blocks_nobody() -> None:
    code = "import sys; sys.stderr.write('noise\\n' * 500_000); print('done')"
    transport = await ChildTransport.start(python(code))
    assert await all_heard(transport) == b"done\n"
    await transport.close()
    assert transport.describe_end() == "exit status 0: noise"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe is as the system makes it")
async def test_a_child_need_not_wait_for_its_reader_with_a_quarter_of_a_megabyte() -> None:
    """Many streams at once come so in fewer pieces."""
    code = "import os; os.set_blocking(1, False); os.write(1, b'x' * 2**20)"
    transport = await ChildTransport.start(python(code))
    written = len(await all_heard(transport))
    await transport.close()
    assert written >= 2**18


# How deaf a child is, and what ends it.
DEAF = {
    "to its input": ("", "signal 15"),
    "to SIGTERM too": ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "signal 9"),
}


@pytest.mark.parametrize("how", DEAF)
async def test_a_deaf_child_is_ended_by_signals(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", 0.1)
    prepare, end = DEAF[how]
    monkeypatch.setattr(stdio, "EXIT_AFTER_TERM", 0.1 if prepare else NEVER)
    code = f"import signal, time\n{prepare}\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
    transport = await ChildTransport.start(python(code))
    await next_heard(transport)
    await transport.close()
    assert transport.describe_end() == end
    with pytest.raises(ProcessLookupError):
        os.kill(transport.pid, 0)


async def test_closing_twice_is_closing_once() -> None:
    transport = await ChildTransport.start(python(ECHO))
    await asyncio.gather(transport.close(), transport.close())
    await transport.close()


async def test_sending_to_a_child_that_has_gone_is_a_connection_error_or_nothing() -> None:
    transport = await ChildTransport.start(python("pass"))
    assert await next_heard(transport) == b""
    try:
        for _ in range(100):
            await transport.send(b"x" * 10_000 + b"\n")
    except ConnectionError:
        pass
    await transport.close()


async def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await ChildTransport.start(Launch([str(tmp_path / "nothing")], ENV))
    with pytest.raises(OSError, match="nowhere"):
        await ChildTransport.start(Launch([sys.executable], ENV, tmp_path / "nowhere"))


async def test_a_program_is_looked_for_where_the_childs_own_path_leads(tmp_path: Path) -> None:
    program = tmp_path / "greet-me"
    program.write_text("#!/bin/sh\necho Hello\n")
    program.chmod(0o755)
    transport = await ChildTransport.start(Launch(["greet-me"], {"PATH": f"{tmp_path}{os.pathsep}{ENV['PATH']}"}))
    assert await all_heard(transport) == b"Hello\n"
    await transport.close()
    with pytest.raises(FileNotFoundError, match="greet-me is not a program"):
        await ChildTransport.start(Launch(["greet-me"], ENV))


async def test_what_would_have_to_wait_is_not_offered() -> None:
    transport = await ChildTransport.start(python("import time; time.sleep(600)"))
    assert transport.offer(b"x" * 2**20 + b"\n"), "the first has the pipe to itself"
    assert not transport.offer(b"more\n")
    transport.abort()
    assert not transport.offer(b"more\n")
    await transport.close()


async def test_the_child_has_its_own_session_and_the_given_place(tmp_path: Path) -> None:
    code = "import os; print(os.getsid(0) == os.getpid(), os.getcwd(), os.environ.get('HOME'))"
    transport = await ChildTransport.start(Launch([sys.executable, "-c", code], ENV, tmp_path))
    assert await all_heard(transport) == f"True {tmp_path} None\n".encode()
    await transport.close()


async def test_what_a_child_started_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """npm's launcher is such a child. Its own child holds the pipes, so their end tells nothing."""
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", 0.2)
    grandchild = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
    code = (
        f"import os, subprocess, sys\nit = subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
        "print(it.pid, flush=True)\nsys.stdin.read()"
    )
    transport = await ChildTransport.start(python(code))
    read = b""
    while read.count(b"\n") < 2:
        read += await next_heard(transport)
    pid = next(int(word) for word in read.split() if word.isdigit())
    await transport.close()
    assert find_process(pid) is None


async def test_an_aborted_child_is_gone_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", NEVER)
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(600)"
    transport = await ChildTransport.start(python(code))
    await next_heard(transport)
    transport.abort()
    async with asyncio.timeout(PATIENCE):
        await transport.close()
    assert transport.describe_end() == "signal 9"
    transport.abort()


async def test_a_closing_that_is_cancelled_kills_and_reaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "EXIT_AFTER_EOF", NEVER)
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(600)"
    transport = await ChildTransport.start(python(code))
    await next_heard(transport)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await transport.close()
    assert transport.describe_end() == "signal 9"


async def test_a_child_tells_its_size() -> None:
    transport = await ChildTransport.start(python("x = 'x' * 2**25\nprint(flush=True)\ninput()"))
    await next_heard(transport)
    size = await transport.resident_bytes()
    assert size is not None
    assert size > 2**25
    await transport.close()
    assert await transport.resident_bytes() is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
async def test_the_child_ends_with_a_parent_that_was_killed() -> None:
    """The pipes stay open in this process, and it is deaf to SIGTERM: only the kernel can end it."""
    keeper = f"""
import asyncio, os
from proxy.rpc import ChildTransport, Launch

async def main():
    code = (
        "import os, signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nos.write(1, b'ready')\\n"
        "while True: time.sleep(60)"
    )
    transport = await ChildTransport.start(Launch([{sys.executable!r}, "-c", code], dict(os.environ)))
    heard = asyncio.Event()
    hearing = asyncio.create_task(transport.hear(lambda data: heard.set()))
    await heard.wait()
    print(transport.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", keeper, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    lines = [await parent.stdout.readline()]
    while not lines[-1].strip().isdigit():
        lines.append(await parent.stdout.readline())
    child = int(lines[-1])
    gone = asyncio.Event()
    watched = os.pidfd_open(child)
    asyncio.get_running_loop().add_reader(watched, gone.set)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    async with asyncio.timeout(PATIENCE):
        await gone.wait()
    asyncio.get_running_loop().remove_reader(watched)
    os.close(watched)
