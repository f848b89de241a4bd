//! Module paths in the imports, expressions and types of a Rust file. Tests don't count.

/// Lexical token with its line; comments and literals are skipped.
#[derive(Debug)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// A path of modules from the root of the crate, and the line that names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// All that the cycle check needs of a file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) imports: Vec<Import>,
    /// Modules that are declared under `#[cfg(test)]` and are in files of their own.
    pub(crate) tests: Vec<String>,
    /// Inherent methods.
    pub(crate) methods: Vec<Method>,
    pub(crate) calls: Vec<Method>,
}

/// A method that a file declares or calls, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// Type of the method; for a call its receiver: a variable, a field or a type.
    pub(crate) of: String,
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// Parses a file whose module path from the crate's root is `module`.
pub(crate) fn read(text: &str, module: &[String]) -> File {
    let tokens = tokens(text);
    let mut file = File::default();
    // Modules in braces that are open, each with the depth at which it ends.
    let mut inline: Vec<(String, usize)> = Vec::new();
    // The type of the inherent `impl` that is open, and its depth.
    let mut methods_of: Option<(&str, usize)> = None;
    let (mut at, mut depth) = (0, 0_usize);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        match token.text {
            "#" if starts(rest, &["#", "[", "cfg", "(", "test", ")", "]"]) => {
                at += 7;
                at += test_item(tokens.get(at..).unwrap_or_default(), &mut file.tests);
                continue;
            }
            "mod" if word(at + 2) == "{" => inline.push((word(at + 1).to_owned(), depth)),
            "impl" if methods_of.is_none() => methods_of = inherent(rest).map(|name| (name, depth)),
            "fn" => {
                let own = methods_of.filter(|(_, opened)| *opened + 1 == depth);
                file.methods.extend(own.map(|(of, _)| method(of, word(at + 1), token.line)));
            }
            "." | "::" if at > 0 && is_call(rest) => {
                let receiver = match (word(at - 1), methods_of) {
                    ("self" | "Self", Some((of, _))) => of,
                    (receiver, _) => receiver,
                };
                file.calls.push(method(receiver, word(at + 1), token.line));
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.pop_if(|(_, opened)| *opened == depth);
                methods_of = methods_of.filter(|(_, opened)| *opened < depth);
            }
            "crate" | "super" | "self" if word(at + 1) == "::" => {
                let before = |back: usize| at.checked_sub(back).map_or("", word);
                let visibility = before(1) == "in" && before(2) == "(" && before(3) == "pub";
                let here =
                    module.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
                let mut found = Vec::new();
                at += tree(rest, here, &mut found);
                if !visibility {
                    file.imports.extend(found);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    file
}

fn method(of: &str, name: &str, line: usize) -> Method {
    Method { of: of.to_owned(), name: name.to_owned(), line }
}

/// Returns true for a `.` or `::` with a name and arguments.
fn is_call(tokens: &[Token<'_>]) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    word(1).starts_with(is_word) && (word(2) == "(" || (word(2) == "::" && word(3) == "<"))
}

fn starts(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| token.text == *word)
}

/// Length of the item after `#[cfg(test)]`.
fn test_item(tokens: &[Token<'_>], tests: &mut Vec<String>) -> usize {
    let mut words = tokens.iter().map(|token| token.text).skip_while(|word| *word == "pub");
    let import = match words.next() {
        Some("mod") => {
            if let (Some(name), Some(";")) = (words.next(), words.next()) {
                tests.push(name.to_owned());
            }
            false
        }
        first => first == Some("use"),
    };
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return index,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 && !import {
                    return index + 1;
                }
            }
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The type of an `impl` without a trait.
fn inherent<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let mut words = tokens.iter().map(|token| token.text).skip(1).peekable();
    let mut name = None;
    let mut generics = 0_usize;
    loop {
        match words.next()? {
            "<" => generics += 1,
            ">" => generics = generics.saturating_sub(1),
            _ if generics > 0 => {}
            "for" => return None,
            "{" | "where" => return name,
            word if word.starts_with(|first: char| first.is_alphabetic()) => name = Some(word),
            _ => {}
        }
    }
}

/// Parses a path or a tree of paths below `prefix`; returns its length in tokens.
fn tree(tokens: &[Token<'_>], mut prefix: Vec<String>, found: &mut Vec<Import>) -> usize {
    let mut at = 0;
    let line = tokens.first().map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text {
            "crate" => prefix.clear(),
            "super" => drop(prefix.pop()),
            "self" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at += tree(tokens.get(at..).unwrap_or_default(), prefix.clone(), found).max(1);
                    while tokens.get(at).is_some_and(|token| !matches!(token.text, "," | "}")) {
                        at += 1;
                    }
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            // `*`, and generics after a path.
            word if !word.starts_with(is_word) => {
                found.push(Import { path: prefix, line });
                return at - 1;
            }
            word => prefix.push(word.to_owned()),
        }
        if tokens.get(at).is_none_or(|token| token.text != "::") {
            break;
        }
        at += 1;
    }
    found.push(Import { path: prefix, line });
    at
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Splits text into words, `::`, `->` and single characters.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (length, kept) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (comment(rest), false),
            '"' => (quoted(rest), false),
            '\'' => (quote(rest), false),
            'r' | 'b' if raw(rest).is_some() => (raw(rest).unwrap_or(1), false),
            _ if is_word(first) => (rest.find(|other| !is_word(other)).unwrap_or(rest.len()), true),
            _ if rest.starts_with("::") || rest.starts_with("->") => (2, true),
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        let Some((token, after)) = rest.split_at_checked(length) else { break };
        if kept {
            tokens.push(Token { text: token, line });
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

/// Length of a comment in `/*`, which may contain others.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let step = if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a string literal.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, character)| {
        let ends = *character == '"' && !escaped;
        escaped = *character == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(index, _)| index + 1)
}

/// Length of a character literal, or of the quote of a lifetime with its name.
fn quote(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => text.get(3..).and_then(|rest| rest.find('\'')).map_or(text.len(), |end| end + 4),
        Some(_) => match characters.next() {
            Some((end, '\'')) => end + 1,
            _ => 1 + text.get(1..).and_then(|rest| rest.find(|other| !is_word(other))).unwrap_or(0),
        },
        None => 1,
    }
}

/// Length of a literal with a prefix: raw strings, bytes.
fn raw(text: &str) -> Option<usize> {
    let prefix = text.len() - text.trim_start_matches(['b', 'r']).len();
    if prefix > 2 {
        return None;
    }
    let (letters, rest) = text.split_at(prefix);
    if !letters.contains('r') {
        let literal = if rest.starts_with('"') { quoted(rest) } else { 0 };
        return (literal > 0).then_some(prefix + literal);
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = rest.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(prefix + hashes + 1 + body.find(&close)? + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Imports of a file `crate::a::b`, as text.
    fn imports(text: &str) -> Vec<String> {
        let module = ["a", "b"].map(str::to_owned);
        read(text, &module).imports.into_iter().map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn trees_give_one_path_for_each_leaf() {
        let text = "use crate::{c::{self, D as E, f::*}, g::H};\nuse std::fs;";
        assert_eq!(imports(text), ["c", "c::D", "c::f", "g::H"]);
        assert_eq!(imports("use {crate::c::D, std::fs};"), ["c::D"]);
    }

    #[test]
    fn super_and_self_are_resolved() {
        assert_eq!(
            imports("use super::c::D; use super::super::e::F; use self::g::H;"),
            ["a::c::D", "e::F", "a::b::g::H"]
        );
        assert_eq!(imports("mod i { use super::c::D; } use super::e::F;"), ["a::b::c::D", "a::e::F"]);
    }

    #[test]
    fn expressions_and_types_count() {
        let text = "fn f(x: &crate::c::D<crate::e::F>) { crate::g::h::<u8>(); for i in crate::j::k() {} }";
        assert_eq!(imports(text), ["c::D", "e::F", "g::h", "j::k"]);
    }

    #[test]
    fn visibilities_comments_and_literals_do_not_count() {
        let text = "pub(in crate::c) fn f<'a>() { // crate::d::e
            /* crate::d /* nested */ crate::d::e */ \"crate::d::e \\\" crate::d::e\"; '\"'; r#\"\" crate::d::e\"#; b'\\''; '\\u{1}'; }
            use crate::f::G;";
        assert_eq!(imports(text), ["f::G"]);
        let module = Vec::new();
        assert_eq!(read(text, &module).imports.first().map(|import| import.line), Some(3));
    }

    #[test]
    fn tests_do_not_count() {
        let text = "#[cfg(test)] use crate::c::{D, E};
            #[cfg(test)] mod samples;
            #[cfg(test)] pub(crate) fn f() -> [u8; 1] { crate::d::e() }
            struct G { #[cfg(test)] h: crate::i::J }
            #[cfg(test)]
            mod tests { use crate::k::L; fn m() {} }
            use crate::n::O;";
        let file = read(text, &[]);
        assert_eq!(file.imports.iter().map(|import| import.path.join("::")).collect::<Vec<_>>(), ["n::O"]);
        assert_eq!(file.tests, ["samples"]);
    }

    #[test]
    fn inherent_impls_are_told_from_those_of_traits() {
        let text = "impl State { fn f() { fn inner() {} } }
            impl<'a, F: Fn() -> u8> a::Step<'a, F> where F: Copy { pub(crate) fn g(&self) -> impl Copy {} }
            impl From<X> for State { fn from() {} } fn free() {}";
        let found = read(text, &[]).methods;
        assert_eq!(found, [method("State", "f", 1), method("Step", "g", 2)]);
    }

    #[test]
    fn calls_are_found_with_their_receiver() {
        let text = "impl Step { fn f(&self) { self.g(); self.state.h::<u8>(1); State::i(); x.field; j(); } }
            fn free() { step.k(y.l()).m(); }";
        let found = read(text, &[]).calls;
        let calls = [("Step", "g"), ("state", "h"), ("State", "i"), ("step", "k"), ("y", "l"), (")", "m")];
        let found: Vec<(&str, &str)> = found.iter().map(|call| (&*call.of, &*call.name)).collect();
        assert_eq!(found, calls);
    }
}
