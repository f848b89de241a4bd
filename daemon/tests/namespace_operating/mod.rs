//! Every command of the operator's page, in the page's order, on hosts of a lab. Needs root.

mod host;
mod page;

use std::path::Path;
use std::process::Output;

use host::Lab;
use page::Block;

#[test]
fn the_operators_page_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/docs/operating.md");
    let steps = page::steps(&std::fs::read_to_string(path).unwrap());
    assert!(steps.len() > 10, "the page was read to its end");
    let lab = Lab::make();
    let mut printed = String::new();
    for step in steps {
        let at = format!("operating.md:{}", step.line);
        match step.what {
            Block::Write { host, file, text } => lab.write(&host, &file, &text),
            Block::Expect(expected) => {
                assert!(
                    page::is_like(&printed, &expected),
                    "{at}: expected\n{expected}\nbut it printed\n{printed}"
                );
            }
            Block::Run { hosts, script, fails } => {
                for host in hosts {
                    println!("{at} {host}# {}", script.trim_end());
                    let output = lab.run(&host, &script);
                    printed = text(&output);
                    println!("{printed}");
                    assert_eq!(output.status.success(), !fails, "{at}: on {host}: {printed}\n{}", lab.logs());
                }
            }
        }
    }
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
