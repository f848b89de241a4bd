//! Problems as statuses of gRPC, with the texts of Meridio's server.

use ipam_api::{Code as ProblemCode, Problem};
use tonic::{Code, Status};

/// Status of a refused request.
pub(crate) fn status(problem: &Problem) -> Status {
    let code = match problem.code {
        // Only a prefix that has ended refuses so: it is being cleared away, and then the call succeeds.
        ProblemCode::InUse => Code::Unavailable,
        code => Code::from_i32(code.entry().grpc.into()),
    };
    let detail = &problem.detail;
    let text = match problem.code {
        ProblemCode::PoolExhausted => format!("no more prefix available: {detail}"),
        _ => detail.clone(),
    };
    let help = &problem.help;
    Status::new(code, if help.is_empty() { text } else { format!("{text}. {help}") })
}

/// Status in the form of Meridio's server, whose errors all have the code `UNKNOWN`.
pub(crate) fn compatible(status: Status) -> Status {
    Status::new(Code::Unknown, status.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_pool_is_named_with_the_text_of_meridio() {
        let problem = Problem::new(ProblemCode::PoolExhausted, "pool default-ipv4 has no free block of /20");
        let status = status(&problem);
        assert_eq!(status.code(), Code::ResourceExhausted);
        let expected = "no more prefix available: pool default-ipv4 has no free block of /20";
        assert!(status.message().starts_with(expected), "{status}");
        let unknown = compatible(status);
        assert_eq!(unknown.code(), Code::Unknown);
        assert!(unknown.message().starts_with(expected), "{unknown}");
    }

    #[test]
    fn each_problem_has_a_code_that_is_not_unknown() {
        for code in ProblemCode::ALL {
            assert!(!matches!(status(&Problem::new(*code, "x")).code(), Code::Unknown | Code::Ok), "{code}");
        }
    }
}
