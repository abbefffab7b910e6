"""Times how long Corpus and other tools take to read many hosts at once; see scripts/fanout.

Arguments: FOLDER PORT CORPUS_SIMULATION AGENT TARGETS...
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

RUNS = 5
COMMAND = "cat /proc/loadavg"
FOLDER = pathlib.Path(sys.argv[1])
PORT, SIMULATION, AGENT = sys.argv[2:5]
BIN = pathlib.Path(sys.executable).parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def addresses(targets):
    return [f"127.0.1.{number}" for number in range(1, targets + 1)]


def prepare(targets):
    """Configuration of the tools: everybody pins the host key, and agrees by curve25519."""
    host_key = " ".join((FOLDER / "host_key.pub").read_text().split()[:2])
    lines = [f"[{address}]:{PORT} {host_key}" for address in addresses(targets)]
    (FOLDER / "known_hosts").write_text("\n".join(lines) + "\n")
    (FOLDER / "hosts").write_text("\n".join(addresses(targets)) + "\n")
    (FOLDER / "ssh_config").write_text(
        f"Host *\n User root\n Port {PORT}\n IdentityFile {FOLDER}/key\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {FOLDER}/known_hosts\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n"
        " KexAlgorithms curve25519-sha256\n LogLevel ERROR\n BatchMode yes\n"
    )
    roster = {
        address: {"host": address, "user": "root", "port": int(PORT), "priv": f"{FOLDER}/key"}
        for address in addresses(targets)
    }
    (FOLDER / "roster").write_text(json.dumps(roster))
    salt = FOLDER / "salt"
    salt.mkdir(exist_ok=True)
    (salt / "master").write_text(
        json.dumps({"root_dir": str(salt), "roster_file": f"{FOLDER}/roster", "enable_fqdns_grains": False,
                    "ssh_options": ["KexAlgorithms=curve25519-sha256", f"UserKnownHostsFile={FOLDER}/known_hosts"]})
    )


def timed(act):
    began = time.monotonic()
    act()
    return time.monotonic() - began


def run(*command, **more):
    env = {**os.environ, **more.pop("env", {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
    return done.stdout


def ssh(targets, *options):
    """One ssh a target, 50 at once."""
    command = ["xargs", "-P50", "-I{}", "ssh", "-F", f"{FOLDER}/ssh_config", *options, "{}", COMMAND]
    run(*command, input="\n".join(addresses(targets)) + "\n")


def openssh(targets):
    return [timed(lambda: ssh(targets)) for _ in range(RUNS)]


def control_master(targets):
    socket = ["-o", f"ControlPath={FOLDER}/cm-%h"]
    ssh(targets, *socket, "-o", "ControlMaster=auto", "-o", "ControlPersist=600")
    times = [timed(lambda: ssh(targets, *socket)) for _ in range(RUNS)]
    for address in addresses(targets):
        run("ssh", "-F", f"{FOLDER}/ssh_config", *socket, "-O", "exit", address)
    return times


def parallel_ssh(targets):
    """Connect and run, then run on the connections that are there."""
    from pssh.clients import ParallelSSHClient

    def ask(client):
        output = client.run_command(COMMAND)
        client.join(output)
        for host in output:
            if host.exit_code != 0:
                raise RuntimeError(f"{host.host}: {host.exit_code}")

    cold, warm = [], []
    for _ in range(RUNS):
        client = ParallelSSHClient(
            addresses(targets), user="root", port=int(PORT), pkey=f"{FOLDER}/key", pool_size=targets
        )
        cold.append(timed(lambda: ask(client)))
        warm.append(timed(lambda: ask(client)))
        client.disconnect() if hasattr(client, "disconnect") else None
        del client
    return cold, warm


def ansible(targets):
    env = {
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_SSH_ARGS": f"-F {FOLDER}/ssh_config -o ControlMaster=auto -o ControlPersist=600",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{FOLDER}/acm",
        "ANSIBLE_HOME": f"{FOLDER}/ansible",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    command = [str(BIN / "ansible"), "all", "-i", f"{FOLDER}/hosts", "-f", "50", "-m", "raw", "-a", COMMAND]
    first = timed(lambda: run(*command, env=env))
    say(f"ansible, first: {first:.1f} s")
    return [timed(lambda: run(*command, env=env)) for _ in range(RUNS)]


def salt_ssh(targets):
    command = [str(BIN / "salt-ssh"), "-c", f"{FOLDER}/salt", "--max-procs", "50", "-i", "-r", "*", COMMAND]
    return [timed(lambda: run(*command)) for _ in range(RUNS)]


def corpus(targets):
    said = json.loads(run(SIMULATION, "fanout", str(FOLDER), AGENT, PORT, str(targets), str(RUNS)))
    return said["cold"], said["warm"]


def measure(targets):
    """Rows of title and seconds, in two groups: connecting each time, and on kept connections."""
    prepare(targets)
    cold, warm = {}, {}
    cold["Corpus: connect, start the agent, read"], warm["Corpus: read"] = corpus(targets)
    say(f"{targets}: {cold} {warm}")
    cold["OpenSSH, `xargs -P50`"] = openssh(targets)
    warm["OpenSSH with live ControlMasters, `xargs -P50`"] = control_master(targets)
    cold["parallel-ssh library"], warm["parallel-ssh library, connections reused"] = parallel_ssh(targets)
    say(f"{targets}: {cold} {warm}")
    warm["Ansible, `-m raw`, 50 forks, pipelining, ControlPersist"] = ansible(targets)
    if (BIN / "salt-ssh").exists():
        cold["salt-ssh, `-r`, 50 processes"] = salt_ssh(targets)
    say(f"{targets}: {cold} {warm}")
    return {"cold": cold, "warm": warm}


def table(results, group, title):
    counts = list(results)
    lines = [f"| {title} | " + " | ".join(f"{count} hosts" for count in counts) + " |", "|---|" + "---|" * len(counts)]
    for row in results[counts[0]][group]:
        medians = [statistics.median(results[count][group][row]) for count in counts]
        lines.append(f"| {row} | " + " | ".join(f"{value:.3f} s" for value in medians) + " |")
    return lines


def verdict(results, group, rivals):
    lines = []
    for count, result in results.items():
        medians = {row: statistics.median(times) for row, times in result[group].items()}
        own = next(value for row, value in medians.items() if row.startswith("Corpus"))
        rival = min(value for row, value in medians.items() if not row.startswith("Corpus") and rivals in row)
        lines.append(f"{rival / own:.1f} times as fast as {'the fastest of the others' if not rivals else rivals} for {count} hosts")
    return ", ".join(lines)


def main():
    before = os.getloadavg()[0]
    results = {int(targets): measure(int(targets)) for targets in sys.argv[5:]}
    print(
        "The state of many hosts, each an address of one real sshd (OpenSSH) on the same machine with "
        f"{os.cpu_count()} processors; key exchange curve25519 for all. Corpus asks its agent for a whole reading (load, "
        f"memory, storage, guests), the others run `{COMMAND}`. Median of {RUNS} runs. Load average before and after: "
        f"{before:.0f} and {os.getloadavg()[0]:.0f}.\n"
    )
    for group, title in [("cold", "Connecting first"), ("warm", "On connections that are there")]:
        print("\n".join(table(results, group, title)) + "\n")
    print(f"Warm, Corpus is {verdict(results, 'warm', '')}; cold, {verdict(results, 'cold', 'OpenSSH')}.")


main()
