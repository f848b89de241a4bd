//! Seeds of text: bodies, values, queries, headers, and plugin input.

use fuzz::parts::joined;

use crate::Seed;

const BODIES: [(u8, &str, &str); 12] = [
    (
        0,
        "network",
        r#"{"name":"blue","description":"x","labels":{"site":"vienna"},"annotations":{"a/b":"c"}}"#,
    ),
    (
        1,
        "subnet",
        r#"{"name":"lan","network":"blue","cidr":"10.1.2.0/24","gateway":"10.1.2.1","vlan":300,"routes":[{"destination":"10.9.0.0/16","gateway":"10.1.2.3"}],"dns":{"nameservers":["2001:db8::53"],"search":["a.example"]}}"#,
    ),
    (
        2,
        "pool",
        r#"{"name":"web","subnet":"lan","ranges":["10.1.2.2-10.1.2.200"],"exclude":["10.1.2.9"],"strategy":"sequential","cooling_ms":30000,"default":true,"meta":{"revision":7},"status":{}}"#,
    ),
    (2, "pool-reversed", r#"{"name":"web","subnet":"lan","ranges":["10.1.2.200-10.1.2.2"]}"#),
    (3, "reservation", r#"{"name":"kept","network":"blue","addresses":["10.1.2.7","2001:db8::/64"]}"#),
    (
        4,
        "allocate",
        r#"{"endpoint":{"kind":"pod","namespace":"prod","name":"w0"},"uid":"u","attachment":{"node":"n","config":"net","container_id":"c0","interface":"eth0"},"interfaces":[{"name":"eth0","ipv4_pools":["web"],"addresses":["10.1.2.5"],"mac":"0a:58:0a:0a:00:4d"}],"started":{"boot_id":"b","at_us":7}}"#,
    ),
    (
        5,
        "release",
        r#"{"attachment":{"realm":"prod","node":"n","config":"net","container_id":"c0","interface":"eth0"},"started":{"boot_id":"b","at_us":7}}"#,
    ),
    (
        6,
        "token",
        r#"{"name":"ci","role":"node","node":{"realm":"prod","name":"n1"},"realms":["prod"],"labels":"team=web,zone in (a,b),!old","ttl_ms":1000}"#,
    ),
    (6, "token-join", r#"{"name":"j","purpose":"join","role":"node","ttl_ms":60000}"#),
    (7, "join", r#"{"node":{"realm":"prod","name":"n1"},"secret_hash":"00ff"}"#),
    (0, "unknown-field", r#"{"name":"a","descripton":"x"}"#),
    (0, "deep", r#"{"name":[[[[[[{"a":[[]]}]]]]]]}"#),
];

const TEXTS: [(u8, &str, &str); 34] = [
    (0, "name", "web-6.lan"),
    (1, "object-name", "Node_1.example:7"),
    (2, "interface", "eth0"),
    (3, "range", "10.0.0.1-10.0.0.9"),
    (3, "range-cidr", "2001:db8::/64"),
    (3, "range-mapped", "::ffff:10.0.0.1"),
    (3, "range-families", "10.0.0.1-2001:db8::1"),
    (4, "selector", "team=web,tier!=db,zone in (a,b),x notin (c),!legacy,there"),
    (4, "selector-empty-value", "a=,b in ()"),
    (5, "time", "2026-11-20T11:30:00.123Z"),
    (5, "time-zone", "2026-11-20T11:30:00+02:00"),
    (6, "kind", "pod"),
    (7, "endpoint", "pod/prod/web/w0"),
    (7, "endpoint-short", "host/h1"),
    (8, "event", "1099511627776.5"),
    (8, "event-behind", "7"),
    (9, "address", "2001:db8::1"),
    (9, "address-mapped", "::ffff:1.2.3.4"),
    (10, "cidr", "10.0.0.0/24"),
    (10, "cidr-host-bits", "10.0.0.1/24"),
    (11, "ranges", "10.0.0.0/24,10.0.1.0-10.0.1.9,10.0.0.255,::/1,255.255.255.255"),
    (11, "ranges-whole", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,0.0.0.0-255.255.255.255"),
    (12, "query", "consistency=stale&at_least_revision=7"),
    (12, "query-write", "dry_run=true&manager=git%20ops&take_over=false"),
    (12, "query-list", "limit=7&cursor=web"),
    (
        12,
        "query-events",
        "kind=allocated&pool=web&address=10.0.0.1&endpoint=pod/prod/web/w0&since=2026-11-20T11:30:00Z&after=7.1&reverse=true",
    ),
    (12, "query-unknown", "limt=7"),
    (
        12,
        "query-filters",
        "sort=-name&fields=name,meta&count=true&labels=team%3Dweb&contains=10.0.0.1&q=x&cursor=AQ",
    ),
    (16, "spiffe", "spiffe://example.org/ns/default/sa/proxy"),
    (16, "spiffe-dots", "spiffe://example.org/../x"),
    (14, "cursor", "AQAAAAAAAAAHAAAAAAAAAAgAAAAAAAAACQ"),
    (13, "headers", "if-match:\"1204\"\nrequest-id:0190-7\nbudget-ms:900\nhost:a"),
    (13, "headers-none-match", "if-none-match:*\nidempotency-key:k\nchange-comment:why\nhost:a\nhost:b"),
    (13, "headers-wrong", "budget-ms:-1\nif-match:x\nif-none-match:y\nchange-comment:\u{e4}"),
];

const CONFIGURATIONS: [(&str, &str); 7] = [
    (
        "add",
        r#"{"cniVersion":"1.1.0","name":"net","ipam":{"type":"ipam-cni","servers":["http://127.0.0.1:7440"],"ipv4_pools":["web"],"realm":"prod","node":"n1"},"dns":{"nameservers":["10.0.0.53"]},"runtimeConfig":{"ips":["10.0.0.5/24"],"mac":"0a:00:00:00:00:01"},"args":{"cni":{"ips":["10.0.0.6"]}}}"#,
    ),
    (
        "old",
        r#"{"cniVersion":"0.2.0","name":"net","ipam":{"default_ipv4_ippool":"web","defaultv6ippool":["six"],"servers":"http://c:3"}}"#,
    ),
    (
        "check",
        r#"{"cniVersion":"1.0.0","name":"net","ipam":{"socket":"/run/x"},"prevResult":{"ips":[{"address":"10.0.0.5/24"}]}}"#,
    ),
    (
        "gc",
        r#"{"cniVersion":"1.1.0","name":"net","ipam":{},"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth0"}]}"#,
    ),
    ("gc-null", r#"{"cniVersion":"1.1.0","name":"net","ipam":{},"cni.dev/attachments":null}"#),
    ("wrong", r#"{"cniVersion":"9.0.0","name":"../x","ipam":[]}"#),
    (
        "wrong-lists",
        r#"{"name":"n","ipam":{"servers":7,"realm":"A/B"},"dns":3,"args":{"cni":[]},"prevResult":{"ips":[{}]}}"#,
    ),
];

const PODS: [(&str, &str); 5] = [
    (
        "list",
        concat!(
            r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"m"#,
            r#"etadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"6","la"#,
            r#"bels":{"app":"web"},"annotations":{"k8s.v1.cni.cncf.io/networks":"kube-system/la"#,
            r#"n@eth1,wan"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","nam"#,
            r#"e":"web","uid":"r1","controller":true}]}}]}"#
        ),
    ),
    (
        "added",
        concat!(
            r#"{"type":"ADDED","object":{"metadata":{"name":"virt-launcher-mail-x","namespace":"#,
            r#""shop","uid":"u2","resourceVersion":"8","labels":null,"annotations":{"k8s.v1.cni"#,
            r#".cncf.io/networks":"[{\"name\":\"lan\",\"interface\":\"net1\"}]"},"ownerReferenc"#,
            r#"es":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","name":"mail"#,
            r#"","uid":"v1","controller":true}]}}}"#
        ),
    ),
    (
        "static",
        concat!(
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"etcd","namespace":"kube-system""#,
            r#","uid":"u3","annotations":{"kubernetes.io/config.mirror":"h","kubernetes.io/conf"#,
            r#"ig.hash":"h","v1.multus-cni.io/default-network":"a/b"}}}}"#
        ),
    ),
    (
        "bookmark",
        concat!(
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","creationTimestam"#,
            r#"p":null}}}"#
        ),
    ),
    ("error", r#"{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}"#),
];

const ARGUMENTS: [(&str, &str); 6] = [
    (
        "kubernetes",
        "CNI_COMMAND=ADD\nCNI_CONTAINERID=c1\nCNI_NETNS=/run/n\nCNI_IFNAME=eth0\nCNI_PATH=/opt\nCNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u1",
    ),
    ("nomad", "IgnoreUnknown=true;NOMAD_REGION=global;NOMAD_NAMESPACE=prod;NOMAD_ALLOC_ID=d96af0be"),
    ("addresses", "IP=10.1.2.5/29,2001:db8:1::9;IP=10.1.2.6;MAC=0a:00:00:00:00:01"),
    (
        "gc",
        "CNI_COMMAND=GC\nCNI_PATH=/opt\nTRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ),
    ("wrong", "CNI_COMMAND=ADD\nCNI_CONTAINERID=../x\nCNI_NETNS=/run/n\nCNI_IFNAME=a/b\nCNI_PATH=/opt"),
    ("unknown", "COLOUR=red;IgnoreUnknown=0;K8S_POD_NAME=../x"),
];

const MERGES: [(&str, &str, &str); 4] = [
    (
        "replace",
        r#"{"name":"a","subnet":"s","labels":{"x":"y"}}"#,
        r#"{"labels":{"x":null,"z":"w"},"default":true}"#,
    ),
    ("nested", r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null,"e":{"f":{"g":null}}}}"#),
    ("object-for-text", r#"{"a":"b"}"#, r#"{"a":{"bb":{"ccc":null}}}"#),
    ("list", r#"{"a":[{"b":null}]}"#, r#"{"a":[1,null]}"#),
];

pub(crate) fn all() -> Vec<Seed> {
    let chosen = |kind: u8, text: &str| [&[kind], text.as_bytes()].concat();
    let mut all: Vec<Seed> = Vec::new();
    all.extend(BODIES.map(|(kind, name, text)| ("request", name.to_owned(), chosen(kind, text))));
    all.extend(TEXTS.map(|(kind, name, text)| ("text", name.to_owned(), chosen(kind, text))));
    all.extend(CONFIGURATIONS.map(|(name, text)| ("cni_config", name.to_owned(), text.into())));
    all.extend(PODS.map(|(name, text)| ("pods", name.to_owned(), text.into())));
    all.extend(ARGUMENTS.map(|(name, text)| ("cni_arguments", name.to_owned(), text.into())));
    all.extend(MERGES.map(|(name, target, patch)| {
        ("merge", name.to_owned(), joined([(0, target.as_bytes()), (1, patch.as_bytes())]))
    }));
    all
}
