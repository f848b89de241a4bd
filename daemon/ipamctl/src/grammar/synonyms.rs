//! Synonyms from other systems, and other word orders.
//!
//! A user of kubectl types `get pools`, a user of NetBox types `vrf list`. Both commands work, and a foreign
//! noun prints a hint with the noun of ipamctl.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::grammar::arguments::Arguments;

/// Nouns of ipamctl.
const NOUNS: [&str; 13] = [
    "network",
    "subnet",
    "pool",
    "reservation",
    "node",
    "host-policy",
    "namespace",
    "endpoint",
    "allocation",
    "prefix",
    "token",
    "quarantine",
    "task",
];

/// Verbs that other systems put before the noun, each with the verb of ipamctl.
const VERBS: [(&str, &str); 12] = [
    ("get", "get"),
    ("list", "list"),
    ("ls", "list"),
    ("watch", "watch"),
    ("show", "show"),
    ("describe", "show"),
    ("create", "create"),
    ("add", "create"),
    ("set", "set"),
    ("edit", "set"),
    ("delete", "delete"),
    ("rm", "delete"),
];

/// Foreign nouns: the noun, its name in a sentence, and the noun of ipamctl.
const FOREIGN: [(&str, &str, &str); 21] = [
    ("vrf", "a VRF", "network"),
    ("view", "a network view", "network"),
    ("scope", "a scope", "network"),
    ("spidersubnet", "a SpiderSubnet", "subnet"),
    ("range", "an IP range", "pool"),
    ("ippool", "an IPPool", "pool"),
    ("spiderippool", "a SpiderIPPool", "pool"),
    ("reservedip", "a ReservedIP", "reservation"),
    ("spiderreservedip", "a SpiderReservedIP", "reservation"),
    ("spiderendpoint", "a SpiderEndpoint", "endpoint"),
    ("workloadendpoint", "a WorkloadEndpoint", "endpoint"),
    ("nncp", "a NodeNetworkConfigurationPolicy", "host-policy"),
    ("lease", "a lease", "allocation"),
    ("iprange", "an IP range", "pool"),
    ("inclusterippool", "an InClusterIPPool", "pool"),
    ("reservedrange", "a reserved range", "reservation"),
    ("aggregate", "an aggregate", "prefix"),
    ("trench", "a trench", "prefix"),
    ("conduit", "a conduit", "prefix"),
    ("conflict", "an address conflict", "quarantine"),
    ("declined", "a declined lease", "quarantine"),
];

/// Commands of other systems that are missing here, with the command to use instead.
const ABSENT: &[(&str, &str)] = &[
    (
        "address",
        "Look up one address: ipamctl who-has ADDRESS. List allocated addresses: ipamctl allocation list",
    ),
    (
        "realm",
        "Realms are part of the names of endpoints and nodes. List endpoints: ipamctl endpoint list --realm REALM",
    ),
    ("health", "Health of the cluster: ipamctl status"),
    ("member", "Members of the cluster: ipamctl cluster members"),
    ("cluster add", ADD_MEMBER),
    ("cluster join", ADD_MEMBER),
    ("cluster list", "Members of the cluster: ipamctl cluster members"),
    ("cluster status", "Health of the cluster: ipamctl status"),
    ("backup", BACK_UP),
    ("snapshot", BACK_UP),
    ("restore", RESTORE),
    ("cluster restore", RESTORE),
    ("cluster recover", "Recovery runs on the host of a stopped member: ipamd recover FILE --data-dir DIR"),
    ("recover", "Recovery runs on the host of a stopped member: ipamd recover FILE --data-dir DIR"),
    ("upgrade", UPGRADE),
    ("cluster upgrade", UPGRADE),
    ("rollback", UPGRADE),
    ("downgrade", UPGRADE),
    (
        "export",
        "Export one kind of resource: ipamctl pool list -o yaml. Back up everything: ipamctl cluster backup FILE",
    ),
    ("import", "Import resources from files: ipamctl apply -f FILE"),
    ("edit", "Change fields of a resource: ipamctl pool set NAME. Apply files: ipamctl apply -f FILE"),
    ("drain", "Drain a pool to another pool: ipamctl pool drain NAME --to OTHER"),
    (
        "role",
        "Roles are fixed: viewer, operator, admin, node. List tokens with their roles: ipamctl token list",
    ),
    ("user", "Clients authenticate with tokens or certificates. List tokens: ipamctl token list"),
    ("reconcile", CHECK),
    ("ipam check", CHECK),
    ("check", CHECK),
    ("scrub", CHECK),
    ("cleanup", "Reclaim allocations of silent nodes: ipamctl gc. List them only: ipamctl gc --dry-run"),
    ("collect", "Reclaim allocations of silent nodes: ipamctl gc. List them only: ipamctl gc --dry-run"),
    ("config", "Servers and credentials are kept in contexts: ipamctl context list"),
    (
        "login",
        "Store servers and a token in a context: ipamctl context set NAME --server URL --token-file FILE",
    ),
];

const ADD_MEMBER: &str = "A new member joins with a token: ipamctl token member --to-file FILE. Configure it on the new host as \
     cluster.join_token_file, start ipamd there, and promote it: ipamctl cluster promote NAME";
const CHECK: &str = "Compare the store with agents and hosts on the wire: ipamctl fsck. Reclaim \
     allocations of silent nodes: ipamctl gc";
const BACK_UP: &str = "Back up the cluster: ipamctl cluster backup FILE";
const RESTORE: &str = "Restore runs on the host of one member, with an empty data directory: ipamd restore FILE --data-dir DIR. \
     Restore single resources from files: ipamctl apply -f FILE";
const UPGRADE: &str = "Install the new ipamd and restart it on one member after the other; check in between: ipamctl status \
     --wait 1m. Roll back in the same way, as long as the feature level (ipamctl status) is unchanged; it rises once all \
     members are upgraded, and then only a restored backup leads back: ipamd restore FILE --data-dir DIR";

/// Advice about a command that is missing here.
pub(crate) fn absent(words: &[OsString]) -> Option<String> {
    let mut typed = places(words).into_iter().filter_map(|place| words.get(place)?.to_str());
    let first = typed.next()?.to_ascii_lowercase();
    let both = format!("{first} {}", typed.next().unwrap_or_default().to_ascii_lowercase());
    let single = [first.as_str(), first.trim_end_matches('s'), first.trim_end_matches("es")];
    // The command exists, so the error has another cause.
    let exists = Arguments::command().find_subcommand(&first).is_some();
    let meant = |known: &str| known == both || (!exists && single.contains(&known));
    ABSENT.iter().find(|(known, _)| meant(known)).map(|(_, hint)| (*hint).to_owned())
}

/// Advice about flags behind a noun without a verb.
pub(crate) fn verbless(words: &[OsString]) -> Option<String> {
    let mut typed = places(words).into_iter().filter_map(|place| words.get(place)?.to_str());
    let (resource_type, _) = resource_type(typed.next()?)?;
    let grammar = Arguments::command();
    let command = grammar.find_subcommand(resource_type)?;
    if typed.any(|word| command.find_subcommand(word).is_some()) {
        return None;
    }
    let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    Some(format!(
        "A verb is missing, such as: ipamctl {resource_type} {} … (verbs: {})",
        verbs.first()?,
        verbs.join(", ")
    ))
}

/// Translates a command line to the words and the order of ipamctl, with a hint if a noun was foreign.
pub(crate) fn translate(mut words: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let places = places(&words);
    let word = |place: usize| -> String {
        let word = places.get(place).and_then(|index| words.get(*index)).and_then(|word| word.to_str());
        word.unwrap_or_default().to_owned()
    };
    let (mut first, mut second, third) = (word(0), word(1), word(2));
    let mut hint = None;
    if let Some((_, ours)) = VERBS.iter().find(|(theirs, _)| *theirs == first)
        && resource_type(&second).is_some()
    {
        (first, second) = (second, (*ours).to_owned());
    }
    if let Some((ours, Some(sentence))) = resource_type(&first) {
        let verb = if second.is_empty() { "list" } else { &second };
        hint = Some(format!("{sentence} is called {ours} here: ipamctl {ours} {verb}"));
        first = ours.to_owned();
    }
    if second == "get" && resource_type(&first).is_some() {
        second = if third.is_empty() { "list" } else { "show" }.to_owned();
    }
    // `address` is no noun here: `address show A` and `ip A` mean `who-has A`.
    if matches!(first.as_str(), "address" | "addresses" | "ip" | "ips") && !second.is_empty() {
        if matches!(second.as_str(), "list" | "ls") {
            replace(&mut words, places.first(), "allocation");
            return (
                words,
                Some("allocated addresses are called allocations here: ipamctl allocation list".to_owned()),
            );
        }
        let hot = if second == "release" { "release" } else { "who-has" };
        if matches!(second.as_str(), "show" | "describe" | "get" | "release") {
            remove(&mut words, places.get(1));
        }
        replace(&mut words, places.first(), hot);
        return (words, hint);
    }
    replace(&mut words, places.first(), &first);
    replace(&mut words, places.get(1), &second);
    (words, hint)
}

/// Noun of ipamctl for a word, and the name in a sentence of a foreign noun.
fn resource_type(word: &str) -> Option<(&'static str, Option<&'static str>)> {
    let word = word.to_ascii_lowercase();
    let singular = word.strip_suffix("es").filter(|word| ["prefix", "trench"].contains(word));
    let singular = singular.or(word.strip_suffix('s')).unwrap_or(&word);
    if let Some(ours) = NOUNS.iter().find(|resource_type| **resource_type == singular) {
        return Some((ours, None));
    }
    let known = FOREIGN.iter().find(|(theirs, _, _)| *theirs == singular);
    known.map(|(_, sentence, ours)| (*ours, Some(*sentence)))
}

/// Indexes of the words that are neither flags nor values of global flags, without the program's name.
fn places(words: &[OsString]) -> Vec<usize> {
    let with_value = flags_with_value();
    let mut places = Vec::new();
    let mut value = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.to_string_lossy();
        if value {
            value = false;
        } else if text == "--" {
            break;
        } else if text.starts_with('-') {
            value = with_value.iter().any(|flag| *flag == text);
        } else {
            places.push(index);
        }
    }
    places
}

/// Global flags whose value is the next word.
fn flags_with_value() -> Vec<String> {
    let grammar = Arguments::command();
    let taking =
        grammar.get_arguments().filter(|flag| flag.is_global_set() && flag.get_action().takes_values());
    taking
        .flat_map(|flag| {
            let short = flag.get_short().map(|short| format!("-{short}"));
            flag.get_long().map(|long| format!("--{long}")).into_iter().chain(short)
        })
        .collect()
}

fn replace(words: &mut [OsString], place: Option<&usize>, word: &str) {
    if let Some(slot) = place.and_then(|index| words.get_mut(*index))
        && slot.to_str().is_some()
    {
        *slot = OsString::from(word);
    }
}

fn remove(words: &mut Vec<OsString>, place: Option<&usize>) {
    if let Some(index) = place.filter(|index| **index < words.len()) {
        words.remove(*index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> (String, Option<String>) {
        let words = line.split_whitespace().map(OsString::from).collect();
        let (words, hint) = translate(words);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        (words.join(" "), hint)
    }

    #[test]
    fn the_order_of_kubectl_is_understood() {
        for (theirs, ours) in [
            ("ipamctl get pools", "ipamctl pools list"),
            ("ipamctl get pool web", "ipamctl pool show web"),
            ("ipamctl -o json get pools", "ipamctl -o json pools list"),
            ("ipamctl describe pool web", "ipamctl pool show web"),
            ("ipamctl pool get", "ipamctl pool list"),
            ("ipamctl pool get web -o json", "ipamctl pool show web -o json"),
            ("ipamctl rm pool web", "ipamctl pool delete web"),
            ("ipamctl pool show get", "ipamctl pool show get"),
            ("ipamctl ip 10.0.0.1", "ipamctl who-has 10.0.0.1"),
            ("ipamctl address show 10.0.0.1", "ipamctl who-has 10.0.0.1"),
            ("ipamctl address release 10.0.0.1", "ipamctl release 10.0.0.1"),
            ("ipamctl watch pools", "ipamctl pools watch"),
            ("ipamctl watch subnet lan", "ipamctl subnet watch lan"),
            ("ipamctl status", "ipamctl status"),
            ("ipamctl", "ipamctl"),
        ] {
            assert_eq!(translated(theirs), (ours.to_owned(), None), "{theirs}");
        }
    }

    #[test]
    fn an_absent_command_is_answered_with_ours() {
        let absent = |line: &str| absent(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert!(absent("ipamctl -o json realms list").unwrap().starts_with("Realms are part"));
        assert!(absent("ipamctl reconcile").unwrap().contains("ipamctl fsck"));
        assert!(absent("ipamctl ipam check").unwrap().contains("ipamctl fsck"));
        assert_eq!(absent("ipamctl gc --dry-run"), None);
        assert_eq!(absent("ipamctl pool list"), None);
        assert_eq!(absent("ipamctl frobnicate"), None);
        assert!(absent("ipamctl restore prod.ipamd").unwrap().contains("ipamd restore FILE"));
        assert!(absent("ipamctl cluster restore prod.ipamd").unwrap().contains("ipamd restore FILE"));
        assert!(absent("ipamctl cluster add n4").unwrap().contains("ipamctl token member"));
        assert!(absent("ipamctl upgrade").unwrap().contains("Roll back in the same way"));
        assert!(absent("ipamctl export").unwrap().contains("-o yaml"));
        assert!(absent("ipamctl addresses").unwrap().contains("ipamctl allocation list"));
        assert_eq!(absent("ipamctl cluster remov n4"), None);
        for (_, hint) in ABSENT {
            // The command to use instead must exist.
            for command in hint.split(": ipamctl ").skip(1) {
                let (mut grammar, mut found) = (&Arguments::command(), 0);
                for word in command.split([' ', '.']) {
                    let Some(nested) = grammar.find_subcommand(word) else { break };
                    (grammar, found) = (nested, found + 1);
                }
                assert!(found > 0 && (found > 1 || !grammar.has_subcommands()), "{hint}");
            }
        }
    }

    #[test]
    fn a_noun_without_a_verb_names_the_verbs() {
        let verbless =
            |line: &str| verbless(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        let hint = verbless("ipamctl reservations --range 10.0.0.1").unwrap();
        assert!(hint.contains("ipamctl reservation list") && hint.contains("create"), "{hint}");
        assert_eq!(verbless("ipamctl reservation create printers"), None);
        assert_eq!(verbless("ipamctl status --range=10.0.0.1"), None);
    }

    #[test]
    fn foreign_words_are_translated_and_told() {
        let (words, hint) = translated("ipamctl vrf list");
        assert_eq!(words, "ipamctl network list");
        assert_eq!(hint.unwrap(), "a VRF is called network here: ipamctl network list");
        let (words, hint) = translated("ipamctl get leases");
        assert_eq!(words, "ipamctl allocation list");
        assert!(hint.unwrap().starts_with("a lease is called allocation here"));
        let (words, hint) = translated("ipamctl get conflicts");
        assert_eq!(words, "ipamctl quarantine list");
        assert!(hint.unwrap().starts_with("an address conflict is called quarantine here"));
        let (words, hint) = translated("ipamctl get trenches");
        assert_eq!(words, "ipamctl prefix list");
        assert!(hint.unwrap().starts_with("a trench is called prefix here"));
        let (words, hint) = translated("ipamctl address list --pool web");
        assert_eq!(words, "ipamctl allocation list --pool web");
        assert!(hint.unwrap().starts_with("allocated addresses are called allocations"));
        assert_eq!(translated("ipamctl get prefixes"), ("ipamctl prefixes list".to_owned(), None));
    }
}
