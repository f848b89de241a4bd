"""Uses each operation of a member through the client that openapi-python-client generates from the document.

Lists, creates, changes and deletes each type of resource, and fails where an answer is not what the document says.
"""

import importlib
import pkgutil
import sys
from datetime import UTC, datetime

import ipamd_client.api
from ipamd_client import AuthenticatedClient, Client, models
from ipamd_client.types import Unset

USED = set()
BEGINNING = datetime(2020, 1, 1, tzinfo=UTC)


class Member:
    """A member, asked through the generated functions."""

    def __init__(self, client):
        self.client = client

    def call(self, operation, status, *path, **rest):
        """Calls an operation, such as `pools.post_v1_pools`, and returns its body. Fails on another status."""
        USED.add(operation)
        function = importlib.import_module(f"ipamd_client.api.{operation}").sync_detailed
        response = function(*path, client=self.client, **rest)
        if response.status_code != status:
            sys.exit(f"{operation}: {response.status_code}, and not {status}: {response.content.decode()}")
        if response.content and response.parsed is None:
            sys.exit(f"{operation}: the client can't read {response.content.decode()}")
        if status >= 400 and not isinstance(response.parsed, models.Problem):
            sys.exit(f"{operation}: no problem, but {response.parsed}")
        return response.parsed


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, and not {wanted!r}")


def resource(member, plural, spec, patch, realm=()):
    """Creates, lists, shows, changes, replaces and deletes a named resource; creates it again for what follows."""
    path = f"{plural}.{{}}_v1_{plural}"
    one = path + ("_realm_name" if realm else "_name")
    name = (*realm, spec.name)
    created = member.call(path.format("post"), 201, body=spec)
    expect(f"name of one of {plural}", created.name, spec.name)
    member.call(path.format("post"), 409, body=spec)
    page = member.call(path.format("get"), 200, count=True)
    expect(f"count of {plural}", page.count, len(page.items))
    expect(f"type of {plural}", {type(item) for item in page.items}, {type(created)})
    expect(f"{plural} with a new one", created.meta.id in {item.meta.id for item in page.items}, True)
    part = member.call(path.format("get"), 200, fields="name")
    expect(f"names of {plural}", spec.name in {item["name"] for item in part.items}, True)
    etag = f'"{created.meta.revision}"'
    changed = member.call(one.format("patch"), 200, *name, body=patch, if_match=etag)
    expect(f"description of one of {plural}", changed.description, patch.description)
    member.call(one.format("patch"), 412, *name, body=patch, if_match=etag)
    shown = member.call(one.format("get"), 200, *name)
    expect(f"revision of one of {plural}", shown.meta.revision, changed.meta.revision)
    # A resource can be sent back as it was shown.
    sent = type(spec).from_dict(shown.to_dict())
    sent.description = "replaced"
    member.call(one.format("put"), 200, *name, body=sent, idempotency_key=f"put-{plural}")
    member.call(one.format("delete"), 204, *name)
    member.call(one.format("get"), 404, *name)
    member.call(one.format("put"), 201, *name, body=spec, if_none_match="*")


def resources(member):
    patch = {"description": "changed", "labels": models.LabelsPatch.from_dict({"team": "web", "tier": None})}
    labels = models.Labels.from_dict({"tier": "db"})
    notes = models.Annotations.from_dict({"note": "two\nlines"})
    resource(member, "networks", models.Network(name="lab", labels=labels), models.NetworkPatch(**patch))
    lan = models.Subnet(
        name="lan",
        network="lab",
        cidr="10.1.0.0/24",
        gateway="10.1.0.1",
        vlan=7,
        mtu=1500,
        dns=models.Dns(nameservers=["10.1.0.2"], search=["example.com"]),
        routes=[models.Route(destination="10.9.0.0/16", gateway="10.1.0.1")],
        automatic=models.AutomaticRules(max_size=8),
        annotations=notes,
    )
    resource(member, "subnets", lan, models.SubnetPatch(**patch, mtu=None, dns=models.DnsPatch(search=None)))
    web = models.Pool(
        name="web",
        subnet="lan",
        ranges=["10.1.0.16-10.1.0.31", "10.1.0.64/28"],
        exclude=["10.1.0.20"],
        cooling_ms=0,
    )
    resource(
        member,
        "pools",
        web,
        models.PoolPatch(**patch, strategy=models.Strategy.SEQUENTIAL, endpoint_selector="team=web"),
    )
    spare = models.Reservation(name="printers", network="lab", addresses=["10.1.0.200-10.1.0.209"])
    resource(member, "reservations", spare, models.ReservationPatch(**patch))
    worker = models.Node(name="Worker_1", realm="prod")
    resource(member, "nodes", worker, models.NodePatch(**patch), realm=("prod",))
    shop = models.Namespace(name="shop", realm="prod", quota=models.Quota(ipv4=100))
    quota = models.QuotaPatch(ipv6=7, per_application=models.AddressLimitsPatch(ipv4=9))
    resource(member, "namespaces", shop, models.NamespacePatch(**patch, quota=quota), realm=("prod",))
    uplink = models.HostPolicy(
        name="uplink",
        realm="prod",
        interfaces=[models.HostPolicyInterface(name="eth1", ipv4_pools=["web"])],
        capture=models.HostPolicyCapture.from_dict({"a": "ippool.web.allocate"}),
        desired_state=models.HostPolicyDesiredState.from_dict(
            {"interfaces": [{"name": "eth1", "ipv4": "{{ capture.a.ip }}"}]}
        ),
        max_unavailable=2,
    )
    resource(member, "host_policies", uplink, models.HostPolicyPatch(**patch, max_unavailable="25%"))


def host_policies(member):
    body = models.RenderHostPolicy(node="Worker_1")
    rendered = member.call("host_policies.post_v1_host_policies_name_render", 200, "uplink", body=body)
    expect("endpoint of a host policy", rendered.endpoint.namespace, "uplink")
    body = models.ResetHostPolicy(node="Worker_1")
    reset = member.call("host_policies.post_v1_host_policies_name_reset", 200, "uplink", body=body)
    expect("addresses of a reset", len(reset.addresses), 1)


def pools(member):
    page = member.call("pools.get_v1_pools_name_map", 200, "web", state=models.AddressState.FREE, limit=1)
    expect("runs of free addresses", (len(page.items), page.items[0].state), (1, "free"))
    expect("subnets", len(member.call("networks.get_v1_networks_name_map", 200, "lab").items), 1)
    expect(
        "runs of a subnet",
        member.call("subnets.get_v1_subnets_name_map", 200, "lan").items[0].first,
        "10.1.0.0",
    )
    split = models.SplitRequest(into="web-b", ranges=["10.1.0.64/28"])
    expect("split pool", member.call("pools.post_v1_pools_name_split", 201, "web", body=split).name, "web-b")
    drained = member.call("pools.post_v1_pools_name_drain", 200, "web-b", body=models.DrainRequest(to="web"))
    expect("target of a drain", drained.to, "web")


def allocations(member):
    key = models.EndpointKey(kind=models.EndpointKind.HOST, name="db-07")
    eth0 = models.InterfaceRequest(
        name="eth0", ipv4_pools=["we?"], families=[models.Family.VALUE_4], mac="0a:58:0a:0a:00:4d"
    )
    request = models.AllocateRequest(
        endpoint=key, interfaces=[eth0], ttl_ms=60_000, hostname="db-07.example.com"
    )
    explained = member.call("allocations.post_v1_allocations_explain", 200, body=request, all_skipped=True)
    expect("revision of an explanation", explained.revision > 0, True)
    given = member.call("allocations.post_v1_allocations", 201, body=request)
    member.call("allocations.post_v1_allocations", 200, body=request)
    held = given.interfaces[0].addresses[0]
    ip = held.address.split("/")[0]
    page = member.call(
        "allocations.get_v1_allocations", 200, endpoint="host/db-07", sort="-id,address", within="10.1.0.0/24"
    )
    expect("allocations", [(one.id, one.lifecycle) for one in page.items], [(held.allocation, "leased")])
    expect(
        "address",
        member.call("allocations.get_v1_allocations_id", 200, held.allocation).address,
        held.address,
    )
    member.call(
        "allocations.post_v1_allocations_id_renew",
        200,
        held.allocation,
        body=models.RenewRequest(ttl_ms=90_000),
    )
    renewed = member.call(
        "endpoints.post_v1_endpoints_kind_realm_namespace_name_renew",
        200,
        models.EndpointKind.HOST,
        "default",
        "default",
        "db-07",
        body=models.RenewRequest(),
    )
    expect("renewed leases", [lease.allocation for lease in renewed.leases], [held.allocation])
    shown = member.call("addresses.get_v1_addresses_ip", 200, ip, network="lab")
    expect("holder", (shown.state, shown.allocation.endpoint.name), ("allocated", "db-07"))
    history = member.call("addresses.get_v1_addresses_ip_history", 200, ip, network="lab", limit=1)
    expect("events of an address", history.events[0].type_, "address.allocated")
    expect(
        "holders", member.call("pools.get_v1_pools_name_holders", 200, "web", limit=10).items[0].allocated, 1
    )
    name = (models.EndpointKind.HOST, "default", "default", "db-07")
    expect(
        "interfaces",
        member.call("endpoints.get_v1_endpoints_kind_realm_namespace_name", 200, *name)
        .status.interfaces[0]
        .name,
        "eth0",
    )
    rendered = member.call(
        "endpoints.get_v1_endpoints_kind_realm_namespace_name_configuration_format",
        200,
        *name,
        models.ConfigurationFormat.NETPLAN,
    )
    expect("files", [(one.path, one.mode) for one in rendered.files], [("/etc/netplan/60-ipamd.yaml", 0o600)])
    expect("rendered address", held.address in rendered.files[0].content, True)
    expect("endpoints", member.call("endpoints.get_v1_endpoints", 200).items[0].name, "db-07")
    released = member.call("allocations.delete_v1_allocations_id", 200, held.allocation)
    expect("released address", released.addresses, [ip])
    member.call("allocations.post_v1_allocations", 201, body=request)
    member.call("endpoints.delete_v1_endpoints_kind_realm_namespace_name", 200, *name)
    bulk(member)
    attached(member)


def bulk(member):
    eth0 = models.InterfaceRequest(name="eth0", ipv4_pools=["web"])
    request = models.BulkAllocateRequest(
        kind=models.EndpointKind.VM, names=["build-0", "build-1"], interface=eth0
    )
    given = member.call("allocations.post_v1_allocations_bulk", 201, body=request)
    expect("names", [one.name for one in given.allocations], ["build-0", "build-1"])
    expect("pools", [one.name for one in given.pools], ["web"])
    again = member.call("allocations.post_v1_allocations_bulk", 200, body=request)
    expect("repeated", [one.repeated for one in again.allocations], [True, True])
    ids = models.BulkReleaseRequest(allocations=[one.allocation for one in given.allocations])
    released = member.call("allocations.post_v1_allocations_release", 200, body=ids)
    expect("released addresses", (len(released.addresses), released.gone), (2, 0))


def attached(member):
    """An attachment as CNI has it, of an endpoint that a controller makes."""
    controller = models.Controller(group="apps", kind="StatefulSet", name="db")
    attachment = models.AttachmentKey(node="n1", config="lan", container_id="c1", interface="eth0")
    started = models.Started(boot_id="5b1c", at_us=7)
    request = models.AllocateRequest(
        endpoint=models.EndpointKey(kind=models.EndpointKind.POD, namespace="shop", name="db-0"),
        interfaces=[models.InterfaceRequest(name="eth0", ipv4_pools=["web"])],
        node="n1",
        attachment=attachment,
        started=started,
        controller=controller,
        labels=models.Labels.from_dict({"app": "db"}),
    )
    member.call("allocations.post_v1_allocations", 201, body=request)
    path = ("default", "n1", "lan", "c1", "eth0")
    shown = member.call("attachments.get_v1_attachments_realm_node_config_container_interface", 200, *path)
    expect("endpoint of an attachment", shown.endpoint.name, "db-0")
    node = ("default", "n1")
    listed = member.call("nodes.get_v1_nodes_realm_name_attachments", 200, *node).items
    expect("attachments of a node", [one.attachment.container_id for one in listed], ["c1"])
    heartbeat = models.HeartbeatRequest(
        boot_id="5b1c",
        boot_number=1,
        ready=True,
        agent_version="0.1.0",
        inventory=models.InventoryDigest(attachments=0, digest="0" * 16),
    )
    heard = member.call("nodes.post_v1_nodes_realm_name_heartbeat", 200, *node, body=heartbeat)
    expect("inventory of a heartbeat", heard.inventory_matches, False)
    agents = member.call("agents.get_v1_agents", 200).items
    expect("agents", [one.node for one in agents], [node[1]])
    expect("agent of a node", member.call("nodes.get_v1_nodes_realm_name_agent", 200, *node).ready, True)
    orphan = models.Orphan(
        config="lan",
        container_id="c1",
        interface="eth0",
        allocations=[1],
        evidence=models.OrphanEvidence.NETNS_GONE,
    )
    orphans = models.OrphansRequest(orphans=[orphan])
    spared = member.call("nodes.post_v1_nodes_realm_name_orphans", 200, *node, body=orphans)
    expect("orphans with other allocations", spared.stale, 1)
    probed = member.call("nodes.post_v1_nodes_realm_name_probes", 200, *node, body=models.ProbesRequest(jobs=8))
    expect("probes of a node without links", (probed.recorded, probed.jobs), (0, []))
    reclaim = models.ReclaimRequest(reason=models.ReclaimReason.NODE_SILENT, allocations=[1])
    spared = member.call("nodes.post_v1_nodes_realm_name_reclaim", 200, *node, body=reclaim)
    expect("allocations of a node that is heard", spared.stale, 1)
    collection(member)
    release = models.ReleaseAttachmentRequest(attachment=attachment, started=started)
    member.call("attachments.post_v1_attachments_release", 200, body=release)
    scale = models.ScaleRequest(controller=controller, namespace="shop", replicas=1)
    member.call("controllers.post_v1_controllers_scale", 200, body=scale)
    end = models.EndRequest(controller=controller, namespace="shop")
    expect("released", len(member.call("controllers.post_v1_controllers_end", 200, body=end).addresses), 1)


def collection(member):
    """Garbage collection, quarantines, and reports of workloads and pods."""
    expect("suspect allocations", member.call("gc.get_v1_gc", 200).items, [])
    tasks = member.call("tasks.get_v1_tasks", 200)
    expect("tasks", (tasks.leads, len(tasks.tasks)), (True, 5))
    expect("quarantines", member.call("quarantines.get_v1_quarantines", 200).items, [])
    member.call("quarantines.get_v1_quarantines_ip", 404, "10.1.0.9")
    member.call("quarantines.delete_v1_quarantines_ip", 404, "10.1.0.9")
    workloads = models.WorkloadsRequest(workloads=[])
    expect("workloads", member.call("workloads.post_v1_workloads", 200, body=workloads).results, [])
    endpoint = models.WorkloadName(name="w-0", namespace="web")
    pod = models.PodIdentity(uid="u1", endpoint=endpoint, node="node-1")
    member.call("pods.post_v1_pods", 200, body=models.PodsReport(realm="reported", pods=[pod]))
    expect("pods", [one.pod.uid for one in member.call("pods.get_v1_pods", 200).items], ["u1"])


def prefixes(member):
    request = models.DelegateRequest(pool="web", owner="trench", length=30)
    block = member.call("prefixes.post_v1_prefixes", 201, body=request).prefix
    member.call("prefixes.post_v1_prefixes", 200, body=request)
    expect("prefixes", [one.owner for one in member.call("prefixes.get_v1_prefixes", 200).items], ["trench"])
    expect("prefix", member.call("prefixes.get_v1_prefixes_id", 200, block.id).cidr, block.cidr)
    waits = models.DelegateRequest(pool="web", owner="later", length=8, wait=True)
    claim = member.call("prefixes.post_v1_prefixes", 202, body=waits).prefix
    expect("waiting prefix", claim.waiting.reason, "PoolExhausted")
    member.call("prefixes.delete_v1_prefixes_id", 200, claim.id)
    listed = [models.PrefixLevel(owner="conduit-a", length=30), models.PrefixLevel(owner="whole", length=8)]
    exactly = models.SetPrefixesRequest(pool="web", realm="mesh", prefixes=listed)
    made = member.call("prefixes.put_v1_prefixes", 200, body=exactly)
    expect("listed prefixes", [bool(one.waiting) for one in made.prefixes], [False, True])
    expect("no others", (made.released, made.ending), ([], False))
    none = models.SetPrefixesRequest(pool="web", realm="mesh", prefixes=[])
    gone = member.call("prefixes.put_v1_prefixes", 200, body=none).released
    expect("left out", [one.owner for one in gone], ["whole", "conduit-a"])
    expect(
        "released prefix", member.call("prefixes.delete_v1_prefixes_id", 200, block.id).cidrs, [block.cidr]
    )


def tokens(member, url):
    made = member.call(
        "tokens.post_v1_tokens",
        201,
        body=models.TokenRequest(name="ops", role=models.Role.OPERATOR, ttl_ms=60_000),
    )
    secret = made.secret
    expect("tokens", [one.name for one in member.call("tokens.get_v1_tokens", 200).items], ["ops"])
    expect(
        "secret of a shown token", bool(member.call("tokens.get_v1_tokens_name", 200, "ops").secret), False
    )
    operator = Member(AuthenticatedClient(base_url=url, token=secret))
    operator.call("networks.get_v1_networks", 200)
    operator.call(
        "tokens.post_v1_tokens", 403, body=models.TokenRequest(name="more", role=models.Role.VIEWER)
    )
    rotated = member.call("tokens.post_v1_tokens_name_rotate", 200, "ops")
    expect(
        "another secret", rotated.secret not in (secret, None) and not isinstance(rotated.secret, Unset), True
    )
    operator.call("networks.get_v1_networks", 401)
    member.call("tokens.delete_v1_tokens_name", 204, "ops")
    member.call("tokens.post_v1_tokens_self_renew", 403)
    joins = models.TokenRequest(
        name="joins", purpose=models.Purpose.JOIN, role=models.Role.NODE, ttl_ms=60_000
    )
    joiner = Member(
        AuthenticatedClient(base_url=url, token=member.call("tokens.post_v1_tokens", 201, body=joins).secret)
    )
    request = models.JoinRequest(node=models.NodeKey(realm="prod", name="n9"), secret_hash="7a" * 32)
    expect("node of a token", joiner.call("join.post_v1_join", 201, body=request).node.name, "n9")


def transactions(member):
    steps = [
        models.TransactionStep(
            method=models.StepMethod.POST,
            path="/v1/networks",
            body=models.TransactionStepBodyType0.from_dict({"name": "both"}),
        ),
        models.TransactionStep(method=models.StepMethod.DELETE, path="/v1/networks/both"),
    ]
    absent = models.TransactionCondition(path="/v1/networks/both", absent=True)
    answer = member.call(
        "transactions.post_v1_transactions", 200, body=models.TransactionRequest(steps=steps, if_=[absent])
    )
    expect("results", [result.status for result in answer.results], [201, 204])


def events(member):
    page = member.call("events.get_v1_events", 200, kind="network,pool", limit=3)
    expect("first events", [event.type_.split(".")[0] for event in page.items], ["network"] * 3)
    after = member.call("events.get_v1_events", 200, after=page.next_, reverse=False, since=BEGINNING)
    expect("events behind a place", len(after.items) > 0, True)


def cluster(member):
    shown = member.call("cluster.get_v1_cluster", 200)
    expect("leader", shown.leader, "n1")
    expect("members", [one.name for one in member.call("cluster.get_v1_cluster_members", 200).items], ["n1"])
    expect("epoch", member.call("cluster.get_v1_cluster_epoch", 200).confirmed, True)
    member.call(
        "cluster.post_v1_cluster_epoch_confirm",
        200,
        body=models.ConfirmRequest(epoch=shown.epoch),
    )
    member.call("cluster.get_v1_cluster_backup", 200, history=False)
    joins = models.JoinMemberRequest(
        name="n2",
        disk_id="d2",
        peer_address="n2.example:7441",
        client_url="http://n2.example:7440",
        level=shown.level,
    )
    expect("code", member.call("cluster.post_v1_cluster_members", 409, body=joins).code, "member-unfit")
    member.call("cluster.delete_v1_cluster_members_name", 404, "n2")
    member.call("cluster.post_v1_cluster_members_name_promote", 404, "n2")
    member.call(
        "cluster.post_v1_cluster_members_name_replace", 404, "n2", body=models.ReplaceRequest(with_="n3")
    )
    member.call("cluster.post_v1_cluster_transfer_leader", 404, body=models.TransferRequest(to="n2"))


def server(member):
    for operation in [
        "get_livez",
        "get_readyz",
        "get_metrics",
        "get_docs",
        "get_docs_problems",
        "get_openapi_json",
    ]:
        member.call(f"server.{operation}", 200)
    expect("product", member.call("server.get_version", 200).product, "ipamd")


def deletions(member):
    for pool in ["web-b", "web"]:
        member.call("pools.delete_v1_pools_name", 204, pool, drain=True)
    member.call("subnets.delete_v1_subnets_name", 204, "lan")
    member.call("reservations.delete_v1_reservations_name", 204, "printers")
    member.call("networks.delete_v1_networks_name", 204, "lab")
    expect("pools at the end", member.call("pools.get_v1_pools", 200).items, [])


def operations():
    """All generated operations, as `tag.function`."""
    for tag in pkgutil.iter_modules(ipamd_client.api.__path__):
        package = importlib.import_module(f"ipamd_client.api.{tag.name}")
        yield from (f"{tag.name}.{operation.name}" for operation in pkgutil.iter_modules(package.__path__))


def main(url):
    member = Member(Client(base_url=url))
    resources(member)
    host_policies(member)
    pools(member)
    allocations(member)
    prefixes(member)
    tokens(member, url)
    transactions(member)
    events(member)
    cluster(member)
    server(member)
    deletions(member)
    expect("operations that the program does not use", sorted(set(operations()) - USED), [])
    print(f"{len(USED)} operations through the generated client")


main(*sys.argv[1:])
