//! Parser for types and their doc comments in the API's source.

/// Source of the resources.
const SOURCE: &str = concat!(
    include_str!("../../../../../api/src/resource.rs"),
    include_str!("../../../../../api/src/host_policy/policy.rs"),
    include_str!("../../../../../api/src/probe.rs"),
    include_str!("../../../../../api/src/node_report.rs"),
    include_str!("../../../../../api/src/resource/application.rs"),
    include_str!("../../../../../api/src/resource/controller.rs"),
    include_str!("../../../../../api/src/resource/endpoint.rs"),
    include_str!("../../../../../api/src/resource/namespace.rs"),
    include_str!("../../../../../api/src/resource/node.rs"),
    include_str!("../../../../../api/src/resource/map.rs"),
    include_str!("../../../../../api/src/resource/pool.rs"),
    include_str!("../../../../../api/src/resource/prefix.rs"),
    include_str!("../../../../../api/src/resource/quota.rs"),
    include_str!("../../../../../api/src/resource/lease.rs")
);

/// Type with its description and its fields.
#[derive(Debug, Default, Clone)]
pub(super) struct Shape {
    /// Doc comment of the type.
    pub(super) says: String,
    /// Description of the type in words; empty for a resource.
    pub(super) kind: String,
    /// Fields in the order of the source.
    pub(super) fields: Vec<Field>,
}

/// A field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    /// Type as written in the source.
    pub(super) kind: String,
    /// Doc comment of the field.
    pub(super) says: String,
}

/// Finds a type by its name.
pub(super) fn shape(name: &str) -> Option<Shape> {
    let head = format!("pub struct {name} {{");
    let mut says = String::new();
    let mut lines = SOURCE.lines();
    for line in lines.by_ref() {
        if line == head {
            break;
        }
        collect(line, &mut says);
    }
    let mut shape = Shape { says: std::mem::take(&mut says), ..Shape::default() };
    for line in lines.by_ref() {
        let line = line.trim();
        if line == "}" {
            return Some(shape);
        }
        if let Some((name, kind)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")) {
            let says = std::mem::take(&mut says);
            let kind = kind.trim_end_matches(',').to_owned();
            shape.fields.push(Field { name: name.trim_start_matches("r#").to_owned(), kind, says });
        } else {
            collect(line, &mut says);
        }
    }
    None
}

/// Collects the doc comment of the next item. A line that is neither comment nor attribute clears it.
fn collect(line: &str, says: &mut String) {
    let line = line.trim();
    if let Some(words) = line.strip_prefix("///") {
        if !says.is_empty() {
            says.push(' ');
        }
        says.push_str(words.trim());
    } else if !line.starts_with("#[") {
        says.clear();
    }
}

/// The type inside a list or an option.
pub(super) fn inner(kind: &str) -> &str {
    let unwrapped = kind.strip_prefix("Option<").or_else(|| kind.strip_prefix("Vec<"));
    match unwrapped.and_then(|rest| rest.strip_suffix('>')) {
        Some(rest) => inner(rest),
        None => kind,
    }
}

/// Describes a type in words.
pub(super) fn words(kind: &str) -> String {
    if let Some(rest) = kind.strip_prefix("Vec<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("list of {}", plural(rest));
    }
    if let Some(rest) = kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("{}, or none", words(rest));
    }
    match one(kind) {
        "object" => values(kind).unwrap_or_else(|| "object".to_owned()),
        word => word.to_owned(),
    }
}

/// Lists the values of an enum.
fn values(kind: &str) -> Option<String> {
    let head = format!("pub enum {kind} {{");
    let lines = SOURCE.lines().skip_while(|line| *line != head).skip(1).map(str::trim);
    let words: Vec<String> = lines
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_suffix(','))
        // The declaration may set the name in JSON; otherwise it is the variant's name in lower case.
        .map(|line| match line.split_once(" = ") {
            Some((_, name)) => name.trim_matches('"').to_owned(),
            None => line.to_ascii_lowercase(),
        })
        .collect();
    let (last, before) = words.split_last()?;
    Some(if before.is_empty() { last.clone() } else { format!("{} or {last}", before.join(", ")) })
}

fn one(kind: &str) -> &str {
    match kind {
        "String" => "text",
        "bool" => "true or false",
        "u64" | "u32" | "u16" | "u8" => "number",
        "Name" | "ObjectName" | "InterfaceName" => "name",
        "NamePattern" => "name with or without wildcards",
        "NetworkAttachment" => "name or namespace/name",
        "Selector" => "label selector, as team=web,tier!=db",
        "PoolSize" => "number, or +number",
        "IpNet" => "CIDR",
        "IpAddr" => "address",
        "AddressRange" => "address range",
        "Labels" | "BTreeMap<String, String>" => "map of texts",
        "Value" => "JSON",
        "MaxUnavailable" => "number, or percentage as 50%",
        "Timestamp" => "time (RFC 3339, UTC)",
        "Family" => "4 or 6",
        "EndpointKey" => "endpoint",
        "MacAddress" => "MAC address",
        _ => "object",
    }
}

fn plural(kind: &str) -> String {
    match one(kind) {
        "address" => "addresses".to_owned(),
        "name with or without wildcards" => "names with or without wildcards".to_owned(),
        "name or namespace/name" => "names or namespace/names".to_owned(),
        word => format!("{word}s"),
    }
}
