//! `ipamctl explain --endpoint …`: the addresses that a request would get, with the reasons.

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::explain::{Candidate, Choice, Explanation, Help, Skipped};

use crate::client::session::Session;
use crate::command::allocate::{self, RequestArguments};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Explains a request. If it would be refused, the exit code is that of the refusal.
pub(super) async fn run(
    session: &Session,
    arguments: &RequestArguments,
    all_skipped: bool,
) -> Result<(), Failure> {
    let request = allocate::request(session, arguments).await?;
    let mut call = Call::post("/v1/allocations/explain").json(&request)?;
    if all_skipped {
        call = call.query("all_skipped", "true");
    }
    let answer = session.ask(call).await?;
    let explanation: Explanation = answer.read()?;
    session.show(&answer.body, &explanation.outcome, || Ok(shown(&explanation)))?;
    if explanation.outcome != "refused" {
        return Ok(());
    }
    Err(Failure::Explained(explanation.problem.map_or(Code::Internal, |problem| problem.code)))
}

fn shown(explanation: &Explanation) -> String {
    let mut text = head(explanation);
    for choice in &explanation.choices {
        text.push('\n');
        text.push_str(&chosen(choice));
    }
    let mut helps: Vec<String> = explanation.helps.iter().map(helped).collect();
    if helps.is_empty() {
        helps.extend(explanation.problem.as_ref().map(|problem| problem.help.clone()));
    }
    if !helps.is_empty() {
        text.push_str("\nwhat would help\n");
        for help in helps {
            text.push_str(&format!("  {help}\n"));
        }
    }
    text
}

fn head(explanation: &Explanation) -> String {
    if let Some(problem) = &explanation.problem {
        return format!("would be refused: {}     {}\n", problem.code, problem.detail);
    }
    let word = if explanation.outcome == "repeated" { "already allocated" } else { "would allocate" };
    let given = explanation.interfaces.iter().flat_map(|interface| {
        let one = |given: &ipam_api::resource::GivenAddress| {
            format!("{word}: {} {} from pool {}\n", interface.name, given.address, given.pool)
        };
        interface.addresses.iter().map(one).collect::<Vec<_>>()
    });
    given.collect()
}

fn chosen(choice: &Choice) -> String {
    let came_from = match choice.came_from.as_str() {
        "subnets" => "the subnets of the request",
        "automatic" => "the application of the endpoint",
        "request" => "the request",
        "namespace" => "the namespace",
        "configuration" => "the CNI configuration",
        _ => "the default pools",
    };
    let evaluated = |candidate: &Candidate| {
        let is_chosen = choice.pool.as_ref() == Some(&candidate.pool);
        match choice.address.filter(|_| is_chosen && choice.kept) {
            Some(address) => ("kept".to_owned(), format!("{address}, already allocated")),
            None => evaluated(candidate, is_chosen),
        }
    };
    let candidates: Vec<(u32, &Candidate)> = (1..).zip(&choice.candidates).collect();
    let table = Table::of(&candidates)
        .text("#", |(number, _)| number)
        .text("POOL", |(_, candidate)| &candidate.pool)
        .text("VERDICT", |(_, candidate)| evaluated(candidate).0)
        .text("DETAIL", |(_, candidate)| evaluated(candidate).1)
        .table();
    let skipped: String = choice.skipped.iter().map(passed_over).collect();
    let more = if choice.more { "…  and more\n" } else { "" };
    format!(
        "{} {}: candidates by {came_from}\n{}{skipped}{more}",
        choice.interface,
        choice.family,
        table.render(true, None)
    )
}

fn passed_over(skipped: &Skipped) -> String {
    let Skipped { count, reason, pools, .. } = skipped;
    let names: Vec<&str> = pools.iter().map(|pool| pool.as_str()).collect();
    let more = if *count > pools.len() as u64 { ", …" } else { "" };
    format!("{} skipped, {reason}: {}{more}\n", text::count(*count), names.join(", "))
}

fn evaluated(candidate: &Candidate, is_chosen: bool) -> (String, String) {
    let address = candidate.address.map(|address| address.to_string()).unwrap_or_default();
    match candidate.verdict.as_str() {
        "gives" if is_chosen => ("selected".to_owned(), address),
        "gives" => ("not needed".to_owned(), format!("alternative {address}")),
        "exhausted" => {
            let counts = &candidate.counts;
            let mut detail = format!(
                "0 free of {}: {} held, {} cooling, {} reserved, {} excluded",
                text::count(counts.size),
                text::count(counts.allocated),
                text::count(counts.cooling),
                text::count(counts.reserved),
                text::count(counts.excluded)
            );
            if let Some(wait_ms) = candidate.next_free_ms {
                detail.push_str(&format!("; the next in about {}", text::roughly(wait_ms)));
            }
            ("exhausted".to_owned(), detail)
        }
        "lacks" => ("no match".to_owned(), "without the requested address".to_owned()),
        code if code == Code::NoPoolFits.to_string() => {
            ("no match".to_owned(), candidate.reason.clone().unwrap_or_default())
        }
        code => (code.to_owned(), candidate.reason.clone().unwrap_or_default()),
    }
}

fn helped(help: &Help) -> String {
    match (help.action.as_str(), help.wait_ms, &help.range) {
        ("wait", Some(wait_ms), _) => {
            format!(
                "wait about {}: the cooling of an address of {} ends then",
                text::roughly(wait_ms),
                help.pool
            )
        }
        ("add-range", _, Some(range)) => format!("ipamctl pool set {} --add-range {range}", help.pool),
        ("enable", ..) => format!("ipamctl pool set {} --enable", help.pool),
        (other, ..) => format!("{other} {}", help.pool),
    }
}
