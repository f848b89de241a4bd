//! Parser for files: YAML with several documents, or JSON; single resources, or lists of resources.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use ipam_api::Problem;
use ipam_api::limits::FILE_BYTES_MAX;
use ipam_api::name::{ResourceName, shown};
use serde_json::Value;

use super::kind::{Kind, Spec};
use super::{nmstate, spiderpool};
use crate::output::data::Data;
use crate::output::error::Failure;

/// Mappings, sequences and scalars of one YAML file.
const YAML_NODES_MAX: usize = 250_000;

/// Desired resource in a file.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) kind: Kind,
    pub(super) name: ResourceName,
    /// The spec, with all defaults.
    pub(super) spec: Spec,
    /// Revision in the file, if there is one.
    pub(super) revision: Option<u64>,
    /// File and position of the document.
    pub(super) place: String,
}

/// Reads files, folders and `-`. Refuses a resource that occurs twice.
pub(super) fn read(files: &[PathBuf], manager: Option<&str>) -> Result<Vec<Document>, Failure> {
    let mut documents: Vec<Document> = Vec::new();
    for file in expand(files)? {
        let text = load(&file)?;
        let place =
            if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
        for (number, data) in (1..).zip(parse(&text, &place)?) {
            documents.extend(resources(&data, &format!("{place}, document {number}"), manager)?);
        }
    }
    documents.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    for (one, other) in documents.iter().zip(documents.iter().skip(1)) {
        if (one.kind, &one.name) == (other.kind, &other.name) {
            let Document { kind, name, place, .. } = one;
            let detail = format!("{} {name} is there twice: in {place} and in {}", kind.word(), other.place);
            return Err(Failure::usage(detail, "Keep one of them."));
        }
    }
    if documents.is_empty() {
        return Err(Failure::usage(
            "these files contain no resource",
            "A file has YAML documents with fields such as `kind: pool`, `name: web`, `subnet: lan-10`.",
        ));
    }
    Ok(documents)
}

/// Lists the files in folders, without those of subfolders.
fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for file in files {
        if !file.is_dir() {
            found.push(file.clone());
            continue;
        }
        let entries = std::fs::read_dir(file).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let entries = entries.map_err(|error| unreadable(file, &error))?;
        let known = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            matches!(ending, "yaml" | "yml" | "json")
        };
        let mut inside: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(known).collect();
        inside.sort();
        found.extend(inside);
    }
    Ok(found)
}

/// Reads a file, or standard input.
pub(crate) fn load(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
    };
    match read {
        Err(error) => Err(unreadable(file, &error)),
        Ok(_) if text.len() as u64 > FILE_BYTES_MAX => Err(Failure::usage(
            format!("{} is longer than {FILE_BYTES_MAX} bytes", file.display()),
            "Divide it.",
        )),
        Ok(_) => Ok(text),
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::file(file, "read", error, "Use a file, a directory, or - for standard input.")
}

/// Parses the documents of a text. A first character `{` or `[` selects the JSON parser, whose error messages
/// are better than those of the YAML parser.
fn parse(text: &str, place: &str) -> Result<Vec<Data>, Failure> {
    let wrong = |why: String| {
        Failure::usage(
            format!("{place} can't be read: {why}"),
            "Use YAML or JSON as written by `-o yaml` or `-o json`.",
        )
    };
    if text.trim_start().starts_with(['{', '[']) {
        return match serde_json::from_str(text).map_err(|error| wrong(error.to_string()))? {
            Data::List(items) => Ok(items),
            one => Ok(vec![one]),
        };
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_documents: 16_384, max_nodes: YAML_NODES_MAX },
    };
    let found: Vec<Data> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| match error {
            serde_saphyr::Error::Budget { .. } => Failure::usage(
                format!(
                    "{place} exceeds the limits of a YAML file: nesting, aliases, or {YAML_NODES_MAX} nodes"
                ),
                "Split the file, or use JSON.",
            ),
            error => wrong(error.to_string()),
        })?;
    Ok(found.into_iter().filter(|data| *data != Data::Null).collect())
}

/// The resources of a document: itself, or the items of a list.
fn resources(data: &Data, place: &str, manager: Option<&str>) -> Result<Vec<Document>, Failure> {
    let Some(Data::List(items)) = data.get("items") else {
        return Ok(vec![resource(data, place.to_owned(), manager)?]);
    };
    let item = |(number, item)| resource(item, format!("{place}, item {number}"), manager);
    (1..).zip(items).map(item).collect()
}

fn resource(data: &Data, place: String, manager: Option<&str>) -> Result<Document, Failure> {
    let at = |detail: String, help: &str| Failure::usage(format!("{place}: {detail}"), help);
    let translated = spiderpool::translated(data).map_err(|problem| at(problem.detail, &problem.help))?;
    let data = translated.as_ref().unwrap_or(data);
    let translated = nmstate::translated(data).map_err(|problem| at(problem.detail, &problem.help))?;
    let data = translated.as_ref().unwrap_or(data);
    let Data::Map(fields) = data else {
        return Err(at(
            "the document is not a resource".to_owned(),
            "A resource has fields, such as `kind: pool`.",
        ));
    };
    let kind = match data.get("kind") {
        None => Kind::guess(|path| data.at(path).is_some()).ok_or_else(|| {
            let name =
                data.get("name").map(|name| format!(" of {}", shown(&name.cell()))).unwrap_or_default();
            at(
                format!("the kind{name} is missing and ambiguous"),
                &format!("Add it, such as `kind: pool`. The kinds are {}.", Kind::words()),
            )
        })?,
        Some(word) => Kind::of(&word.cell()).ok_or_else(|| {
            at(
                format!("{} is not a kind of resource", shown(&word.cell())),
                &format!("The kinds are {}.", Kind::words()),
            )
        })?,
    };
    let revision = match data.at("meta.revision") {
        Some(Data::Number(number)) => number.as_u64(),
        _ => None,
    };
    let kept = fields.iter().filter(|(field, _)| field != "kind").cloned().collect();
    let refused = |problem: Problem| {
        let name = data.get("name").map(|name| format!(" {}", name.cell())).unwrap_or_default();
        at(format!("{}{name}: {}", kind.word(), problem.detail), &problem.help)
    };
    let json = serde_json::to_vec(&Data::Map(kept)).map_err(|error| at(error.to_string(), ""))?;
    let (name, mut spec) = kind.read(&json).map_err(refused)?;
    if let Some(manager) = manager {
        let said = spec.get("managed_by").and_then(Value::as_str);
        if let Some(other) = said.filter(|said| *said != manager) {
            return Err(at(
                format!("{} {name} is managed by {}", kind.word(), shown(other)),
                "Remove managed_by from the file, or use that manager with --manager.",
            ));
        }
        spec.insert("managed_by".to_owned(), manager.into());
    }
    Ok(Document { kind, name, spec, revision, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Result<Vec<Document>, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.yaml");
        std::fs::write(&file, text).unwrap();
        read(&[file], None)
    }

    fn names(text: &str) -> Vec<String> {
        let named = |document: &Document| format!("{}/{}", document.kind.word(), document.name);
        documents(text).unwrap().iter().map(named).collect()
    }

    #[test]
    fn several_documents_are_put_into_order() {
        let text = "kind: reservation\nname: printers\naddresses: [10.0.0.9]\n---\n\
                    kind: pool\nname: web\nsubnet: lan\n---\n# nothing\n---\n\
                    kind: Subnets\nname: lan\ncidr: 10.0.0.0/24\n---\nkind: network\nname: lab\n";
        assert_eq!(names(text), ["network/lab", "subnet/lan", "pool/web", "reservation/printers"]);
    }

    #[test]
    fn the_output_of_a_list_can_be_applied() {
        let text = "items:\n  - name: web\n    subnet: lan\n    meta: {revision: 1204, id: 4}\n    status: {x: 1}\n\
                    revision: 9\n";
        let found = documents(text).unwrap();
        assert_eq!((found[0].kind, found[0].revision), (Kind::Pool, Some(1204)));
        assert_eq!(names(r#"{"items":[{"name":"lan","cidr":"10.0.0.0/24"}],"revision":9}"#), ["subnet/lan"]);
        let network = r#"[{"name":"a","meta":{"id":1},"status":{"subnets":0}},{"name":"r","addresses":[]}]"#;
        assert_eq!(names(network), ["network/a", "reservation/r"]);
        let node = r#"{"items":[{"name":"w3","realm":"eu","labels":{},"meta":{"id":1},"status":{}}]}"#;
        assert_eq!(names(node), ["node/eu/w3"]);
    }

    #[test]
    fn policies_of_nmstate_become_host_policies() {
        const CAPTURE: &str = "capture: {a: ippool.traffic-1.allocate}\n";
        const STATE: &str = "desiredState: {interfaces: [{name: eth1, ipv4: \"{{ capture.a.ip }}\"}]}\n";
        let head = "apiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {name: p}\n";
        let indented = |text: &str| format!("  {text}");
        let with_spec = format!(
            "{head}spec:\n{}{}{}",
            indented(CAPTURE),
            indented(STATE),
            "  maxUnavailable: 3\n  nodeSelector: {zone: a, team: web}\n"
        );
        for text in [format!("{head}{CAPTURE}{STATE}"), with_spec] {
            let found = documents(&text).unwrap();
            let [Document { kind: Kind::HostPolicy, name, spec, .. }] = found.as_slice() else {
                panic!("{found:?}")
            };
            assert_eq!(name.as_str(), "p");
            assert_eq!(spec["desired_state"]["interfaces"][0]["ipv4"], "{{ capture.a.ip }}");
            assert_eq!(spec["capture"]["a"], "ippool.traffic-1.allocate");
            if text.contains("spec") {
                assert_eq!(spec["max_unavailable"], 3);
                assert_eq!(spec["node_selector"], "zone=a,team=web");
            } else {
                assert_eq!(spec["max_unavailable"], "50%");
            }
        }
        for (bad, word) in [
            (format!("{head}spec: {{desired: 1}}\n"), "no field"),
            (format!("{head}spec: [1]\n"), "an object"),
            (head.replace("NodeNetworkConfigurationPolicy", "NodeNetworkState"), "only"),
        ] {
            let said = documents(&bad).unwrap_err().text(false).unwrap();
            assert!(said.contains(word), "{said}");
        }
        let ours = "kind: HostPolicy\nname: p\n---\nname: q\ncapture: {}\n";
        assert_eq!(names(ours), ["host-policy/p", "host-policy/q"]);
    }

    #[test]
    fn an_error_names_its_document_and_field() {
        for (text, word) in [
            (
                "kind: prefix\nname: a\n",
                "network, subnet, pool, reservation, node, namespace and host-policy",
            ),
            ("name: foo\n", "the kind of \"foo\" is missing"),
            (
                "name: foo\nrealm: prod-eu\n",
                "network, subnet, pool, reservation, node, namespace and host-policy",
            ),
            ("kind: pool\nname: web\nsubnet: lan\nrange: [10.0.0.1]\n", "did you mean \"ranges\""),
            ("kind: pool\nname: web\nsubnet: lan\nranges: [10.0.0.9-10.0.0.1]\n", "document 1"),
            ("kind: pool\nname: web\nsubnet: lan\n---\nkind: pool\nname: web\nsubnet: lan\n", "twice"),
            ("kind: network\nname: 10.20\n", "document 1"),
            ("kind: network\nname: a\nname: b\n", "duplicate"),
            ("- a\n- b\n", "not a resource"),
            ("a: [", "can't be read"),
            ("{\"a\": ", "can't be read"),
            ("", "no resource"),
            ("a: &a [x]\nb: *c\n", "can't be read"),
        ] {
            let failure = documents(text).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{text}");
            let said = failure.text(false).unwrap();
            assert!(said.contains(word), "{text}\n{said}");
        }
    }

    #[test]
    fn a_manager_is_written_into_its_resources() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.yaml"), "kind: network\nname: lab\n").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "not: read").unwrap();
        let found = read(&[folder.path().to_owned()], Some("argocd")).unwrap();
        assert_eq!(found[0].spec["managed_by"], "argocd");
        std::fs::write(folder.path().join("a.yaml"), "kind: network\nname: lab\nmanaged_by: me\n").unwrap();
        assert_eq!(read(&[folder.path().to_owned()], Some("argocd")).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn hostile_files_end_soon() {
        let deep = "[".repeat(100_000);
        assert!(documents(&deep).is_err());
        let deep = "a:\n".to_owned() + &(1..2000).map(|depth| " ".repeat(depth) + "a:\n").collect::<String>();
        assert!(documents(&deep).is_err());
        let bomb = (0..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
            text + &format!("a{}: &a{} [*a{n}, *a{n}, *a{n}, *a{n}]\n", n + 1, n + 1)
        });
        assert!(documents(&bomb).is_err());
    }
}
