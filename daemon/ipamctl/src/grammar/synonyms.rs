//! Words of other systems, and other orders of the same words.
//!
//! A user of kubectl types `get pools`, a user of NetBox types `vrf list`. Both get what they mean, and the
//! second one learns our word on the way.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::grammar::arguments::Arguments;

/// Our nouns.
const NOUNS: [&str; 10] = [
    "network",
    "subnet",
    "pool",
    "reservation",
    "node",
    "namespace",
    "endpoint",
    "allocation",
    "prefix",
    "token",
];

/// Verbs that others put before the noun, and what we call them.
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

/// Words of others for our nouns: their word, the same in a sentence, our word.
const FOREIGN: [(&str, &str, &str); 18] = [
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
    ("lease", "a lease", "allocation"),
    ("iprange", "an IP range", "pool"),
    ("inclusterippool", "an InClusterIPPool", "pool"),
    ("reservedrange", "a reserved range", "reservation"),
    ("aggregate", "an aggregate", "prefix"),
    ("trench", "a trench", "prefix"),
    ("conduit", "a conduit", "prefix"),
];

/// Words that people expect and that this version doesn't have, with what it has instead.
const ABSENT: &[(&str, &str)] = &[
    ("realm", "Realms aren't kept by themselves yet; endpoints name theirs: ipamctl endpoint list"),
    ("task", "Tasks can't be run by hand yet; whether the cluster is well: ipamctl status"),
    ("member", "Members can't be changed from here yet; who they are: ipamctl status"),
    ("backup", "Backups are made with: ipamctl cluster backup FILE"),
    ("restore", "Restoring isn't built yet; resources come back from files: ipamctl apply -f FILE"),
    ("role", "Roles are fixed: viewer, operator, admin, node. What has one: ipamctl token list"),
    ("user", "Who asks shows a token here: ipamctl token list"),
    ("gc", "Reclaiming by hand isn't built yet; one address goes back with: ipamctl release ADDRESS"),
    ("fsck", "Comparing with agents isn't built yet; who has an address: ipamctl who-has ADDRESS"),
    ("import", "Importing isn't built yet; files are taken by: ipamctl apply -f FILE"),
    ("config", "Which clusters there are is kept in contexts here: ipamctl context list"),
    ("login", "Who asks shows a token here: ipamctl context set NAME --server URL --token-file FILE"),
];

/// Advice about a command that this version doesn't have.
pub(crate) fn absent(words: &[OsString]) -> Option<String> {
    let place = *places(words).first()?;
    let word = words.get(place)?.to_str()?.to_ascii_lowercase();
    let grammar = Arguments::command();
    // What is built in the meantime isn't absent.
    let has = |name: &str| grammar.find_subcommand(name).is_some();
    let singular = word.trim_end_matches('s');
    if has(&word) {
        return None;
    }
    let (_, hint) = ABSENT.iter().find(|(absent, _)| *absent == word || *absent == singular)?;
    Some((*hint).to_owned())
}

/// Puts a command line into our words and our order; with a hint where a word was foreign.
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
    // `address show A` and `ip A` ask the one question that there is about an address.
    if matches!(first.as_str(), "address" | "addresses" | "ip") && !second.is_empty() {
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

/// Our noun for a word, with the sentence about it if the word is foreign.
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

/// Places of words that are neither flags nor values of global flags, without the program's name.
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
    fn what_is_not_built_is_said_to_be_so() {
        let absent = |line: &str| absent(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert!(absent("ipamctl -o json realms list").unwrap().starts_with("Realms aren't kept"));
        assert!(absent("ipamctl gc --dry-run").unwrap().contains("ipamctl release"));
        assert_eq!(absent("ipamctl pool list"), None);
        assert_eq!(absent("ipamctl frobnicate"), None);
        for (_, hint) in ABSENT {
            // What is named instead must exist.
            let (_, command) = hint.split_once(": ipamctl ").unwrap();
            let word = command.split(' ').next().unwrap();
            assert!(Arguments::command().find_subcommand(word).is_some(), "{hint}");
        }
    }

    #[test]
    fn foreign_words_are_translated_and_told() {
        let (words, hint) = translated("ipamctl vrf list");
        assert_eq!(words, "ipamctl network list");
        assert_eq!(hint.unwrap(), "a VRF is called network here: ipamctl network list");
        let (words, hint) = translated("ipamctl get leases");
        assert_eq!(words, "ipamctl allocation list");
        assert!(hint.unwrap().starts_with("a lease is called allocation here"));
        let (words, hint) = translated("ipamctl get trenches");
        assert_eq!(words, "ipamctl prefix list");
        assert!(hint.unwrap().starts_with("a trench is called prefix here"));
        assert_eq!(translated("ipamctl get prefixes"), ("ipamctl prefixes list".to_owned(), None));
    }
}
