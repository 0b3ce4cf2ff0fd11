"""The examples for several machines: they set settings, ask what is answered, and leave time enough to end."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from proxy.cli.commands import build_parser
from proxy.ingress.apis import APIS
from proxy.ingress.routes import KEYLESS, ROUTES
from proxy.rpc import stdio
from proxy.settings import Settings
from proxy.sources import gather
from tests.support.codex_programs import ROOT
from tests.support.patience import SHIPPED

FOLDER = ROOT / "docs" / "howto" / "many-machines"
NGINX = (FOLDER / "nginx.conf").read_text("utf-8")
CONTAINERFILE = (ROOT / "docs" / "howto" / "service" / "Containerfile").read_text("utf-8")
COMPOSE: Any = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
KUBERNETES: list[Any] = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8")))
(SET,) = (each for each in KUBERNETES if each["kind"] == "StatefulSet")
POD = SET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
MACHINES = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "tagcall"}

# Seconds that a process may take to end by itself.
ENDS_WITHIN = (
    SHIPPED["proxy.server.DRAIN"] + SHIPPED["proxy.server.FAREWELL"] + stdio.EXIT_AFTER_EOF + stdio.EXIT_AFTER_TERM
)


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def in_force(arguments: list[str], environment: dict[str, str]) -> Settings:
    sources = gather(vars(build_parser().parse_args(arguments)), environment)
    assert not sources.warnings, "a variable that is no setting"
    return sources.settings


def substituted(text: str) -> str:
    """As Compose does where nothing is set; what is wanted has a value."""
    return re.sub(r"\$\{\w+:(?:-([^}]*)|\?[^}]*)\}", lambda found: found[1] or "given", text)


@pytest.mark.parametrize("name", MACHINES)
def test_each_container_of_compose_is_a_tagcall_with_the_others_store_and_secret(name: str) -> None:
    machine = MACHINES[name]
    (arguments,) = re.findall(r'(?m)^CMD \["(.*)"\]$', CONTAINERFILE)
    settings = in_force(
        arguments.split('", "'), {key: substituted(text) for key, text in machine["environment"].items()}
    )
    assert settings.api_key == ("given",)
    assert settings.store.startswith("redis://redis:")
    mounts = dict(volume.split(":")[::-1] for volume in machine["volumes"])
    assert mounts[str(settings.call_key_secret.parent)] == "shared"
    assert mounts["/data"] == name, "each has a login of its own"
    assert set(mounts.values()) <= set(COMPOSE["volumes"])
    assert set(mounts) <= set(re.findall(r"(?<= )/\w+", re.findall(r"(?m)^RUN install .*$", CONTAINERFILE)[0]))
    assert seconds(machine["stop_grace_period"]) > ENDS_WITHIN


def test_what_compose_names_is_there() -> None:
    names = set(COMPOSE["services"])
    for service in COMPOSE["services"].values():
        assert set(service.get("depends_on", ())) <= names
        for volume in service["volumes"]:
            source, target = volume.removesuffix(":ro").split(":")
            assert source in COMPOSE["volumes"] or (target == "/etc/nginx/nginx.conf" and (FOLDER / source).exists())
    build = next(iter(MACHINES.values()))["build"]
    context = (FOLDER / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).read_text("utf-8") == CONTAINERFILE


def test_nginx_passes_on_to_each_container_at_its_port() -> None:
    port = Settings().port
    assert re.findall(r"server (\S+):(\d+) ", NGINX) == [(name, str(port)) for name in MACHINES]
    (published,) = COMPOSE["services"]["nginx"]["ports"]
    assert published.rpartition(":")[2] == str(re.findall(r"listen (\d+);", NGINX)[0])
    assert f"EXPOSE {port}" in CONTAINERFILE


def test_nginx_reads_more_than_tagcall_and_waits_longer() -> None:
    sizes = {int(size) for size in re.findall(r"client_\w+_size (\d+)m;", NGINX)}
    assert sizes
    assert min(sizes) * 2**20 > Settings().max_body
    assert Settings().idle_timeout < 3600
    assert "proxy_read_timeout 1h;" in NGINX


def test_the_turns_that_nginx_begins_anew_are_routes() -> None:
    (pattern,) = re.findall(r"location ~ (\S+) {", NGINX)
    anew = {path for path, methods in ROUTES.items() if re.search(pattern, f"/v1{path}") and "POST" in methods}
    assert anew == {path for api in APIS for path in api.turns} | {"/responses"}
    (again,) = re.findall(r'"~\^POST (\S+)" @elsewhere', NGINX)
    assert again == pattern.removeprefix("^")


def test_the_pod_runs_a_command_of_ours_with_settings_of_ours() -> None:
    environment = {
        each["name"]: each["value"].replace("$(NAMESPACE)", "ours") for each in CONTAINER["env"] if "value" in each
    }
    settings = in_force(CONTAINER["args"], environment)
    assert "tagcall.ours.svc.cluster.local" in settings.allow_host
    assert settings.host == "0.0.0.0"
    assert settings.store.startswith("redis://")
    names = {each["metadata"]["name"] for each in KUBERNETES if each["kind"] == "Service"}
    assert "tagcall" in names & set(settings.allow_host)
    assert SET["spec"]["serviceName"] in names
    mounted = {mount["mountPath"]: mount["name"] for mount in CONTAINER["volumeMounts"]}
    assert settings.api_key_file is not None
    assert mounted[str(settings.api_key_file.parent)] == mounted[str(settings.call_key_secret.parent)] == "secrets"
    assert f"XDG_DATA_HOME={next(path for path, name in mounted.items() if name == 'data')}" in CONTAINERFILE
    assert [each["containerPort"] for each in CONTAINER["ports"]] == [settings.port]
    assert f"--uid {POD['securityContext']['runAsUser']} " in CONTAINERFILE


def test_its_probes_ask_what_needs_no_key() -> None:
    probes = {name: CONTAINER[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= KEYLESS
    assert {probe["port"] for probe in probes.values()} == {port["name"] for port in CONTAINER["ports"]}


def test_it_has_time_to_end() -> None:
    sleep, pause = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert sleep == "sleep"
    assert POD["terminationGracePeriodSeconds"] > int(pause) + ENDS_WITHIN


def test_selectors_find_the_pods() -> None:
    labels = SET["spec"]["template"]["metadata"]["labels"]
    for each in KUBERNETES:
        selector = each["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels


def test_what_compose_takes_from_outside_stands_in_the_example() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    example = (FOLDER / "env.example").read_text("utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(re.findall(r"(?m)^(\w+)=", example))


def test_no_namespace_is_fixed() -> None:
    for each in KUBERNETES:
        assert "namespace" not in each["metadata"]
    assert "default.svc" not in (FOLDER / "kubernetes.yaml").read_text("utf-8")
