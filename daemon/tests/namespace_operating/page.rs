//! The operator's page as a list of steps.
//!
//! | in the page | meaning |
//! |---|---|
//! | a block `sh HOST…` | run on each host, in turn; it must succeed, with `fails` behind the hosts it must not |
//! | a block `text` | what the block before it printed, on its last host; `…` stands for anything |
//! | a block `toml HOST:FILE` or `json HOST:FILE` | the file's content |
//! | `<!-- lab HOST…: COMMAND -->` | done by the test alone: what happens to an operator, or waits for it |

/// Something to do, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) what: Block,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Run { hosts: Vec<String>, script: String, fails: bool },
    Expect(String),
    Write { host: String, file: String, text: String },
}

/// Reads the page.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((line, text)) = lines.next() {
        if let Some(hidden) = text.strip_prefix("<!-- lab ").and_then(|rest| rest.strip_suffix(" -->")) {
            let (hosts, script) = hidden.split_once(": ").expect("`<!-- lab HOST: COMMAND -->`");
            let hosts = hosts.split(' ').map(str::to_owned).collect();
            steps.push(Step { line, what: Block::Run { hosts, script: script.to_owned(), fails: false } });
        }
        let Some(words) = text.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```").collect();
        let mut body = body.join("\n");
        body.push('\n');
        let mut words = words.split(' ');
        let what = match words.next() {
            Some("sh") => {
                let mut hosts: Vec<String> = words.map(str::to_owned).collect();
                let fails = hosts.last().is_some_and(|word| word == "fails");
                if fails {
                    hosts.pop();
                }
                assert!(!hosts.is_empty(), "line {line}: on which host?");
                Block::Run { hosts, script: body, fails }
            }
            Some("text") => Block::Expect(body),
            Some("toml" | "json") => {
                let place = words.next().and_then(|word| word.split_once(':'));
                let (host, file) = place.unwrap_or_else(|| panic!("line {line}: toml HOST:FILE"));
                Block::Write { host: host.to_owned(), file: file.to_owned(), text: body }
            }
            other => panic!("line {line}: a block of a kind that isn't tested: {other:?}"),
        };
        steps.push(Step { line, what });
    }
    steps
}

/// Commands of a page that all run on one host: its blocks `sh` without a further word, with their lines.
pub(crate) fn commands(page: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((line, text)) = lines.next() {
        if text == "```sh" {
            let body = lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```");
            commands.push((line, body.collect::<Vec<_>>().join("\n")));
        }
    }
    commands
}

/// True if a text matches: `…` stands for any text in a line or, alone, for any lines. The width of gaps
/// between columns doesn't matter.
pub(crate) fn is_like(text: &str, expected: &str) -> bool {
    let plain = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    lines_are_like(&plain(text.trim_end()), &plain(expected.trim_end()))
}

fn lines_are_like(lines: &[String], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|skipped| lines_are_like(&lines[skipped..], rest))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line_is_like(line, first) && lines_are_like(others, rest)),
    }
}

fn line_is_like(line: &str, expected: &str) -> bool {
    let Some((before, after)) = expected.split_once('…') else { return line == expected };
    let Some(rest) = line.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| line_is_like(&rest[at..], after))
}

#[test]
fn a_page_is_read_as_it_is_meant() {
    let page = "Do:\n```sh n1 n2 fails\nfalse\n```\n<!-- lab desk: true -->\n```text\na …\n```\n";
    let page = format!("{page}```toml n1:/etc/x\na = 1\n```\n");
    let run = |hosts: &[&str], script: &str, fails| Block::Run {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        script: script.to_owned(),
        fails,
    };
    let steps: Vec<Block> = steps(&page).into_iter().map(|step| step.what).collect();
    let write = Block::Write { host: "n1".to_owned(), file: "/etc/x".to_owned(), text: "a = 1\n".to_owned() };
    let expect = Block::Expect("a …\n".to_owned());
    assert_eq!(steps, [run(&["n1", "n2"], "false\n", true), run(&["desk"], "true", false), expect, write]);
}

#[test]
fn commands_are_blocks_without_a_further_word() {
    let page = "```sh\nls\npwd\n```\n```sh example\nrm\n```\n\n```sh\ntrue\n```\n";
    assert_eq!(commands(page), [(1, "ls\npwd".to_owned()), (9, "true".to_owned())]);
}

#[test]
fn output_is_compared_with_gaps() {
    assert!(is_like("NAME   ROLE\nn1  leader 3 ms\n", "NAME ROLE\nn1 leader … ms\n"));
    assert!(is_like("a\nb\nc\n", "…\nc\n"));
    assert!(!is_like("a\nb\n", "a\n"));
    assert!(!is_like("n1 leader\n", "n2 …\n"));
}
