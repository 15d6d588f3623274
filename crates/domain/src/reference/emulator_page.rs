//! The reference page of the emulator, generated from its tables.

use std::fmt::Write as _;

use crate::{
    emulator::{
        clock::CLOCK_CHANGE,
        duration,
        failures::{DEFAULT_CODE, Failure, SEND_FAILURES, TEMPLATE_FAILURES},
        faults::{Call, FAULT, FaultKind, MAX_FAULTS},
        messages::{MAX_KEPT, MAX_STATUSES_PER_REQUEST, timeline},
        recipients::{MAGIC_RECIPIENTS, MessageFate},
        rules::{MAX_RULES, Outcome, REVIEW_RULE, ReviewRules},
        script::{ScriptStep, steps},
        suffixes::Suffix,
    },
    rulebook::{Category, ObjectSchema, Presence},
    webhook::RejectionReason,
};

/// The duration in the examples of the page.
const EXAMPLE_DURATION: &str = "10m";

/// The page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Emulator reference\n\n\
         <!-- Generated from the tables of `galley-domain`. To update it, run \
         UPDATE_DOCS=1 cargo test -p galley-domain --test domain pages -->\n\n\
         An emulator account has the rulebook `whatsapp`, and a script reviews its templates on a \
         clock of its own. Times on this page are times of that clock. [The emulator](emulator.md) \
         begins with an example.\n",
    );
    review_section(&mut page);
    suffixes_section(&mut page);
    rules_section(&mut page);
    clock_section(&mut page);
    recipients_section(&mut page);
    faults_section(&mut page);
    failures_section(&mut page);
    page
}

fn review_section(page: &mut String) {
    page.push_str(
        "\n## Review\n\nThe script of each new version, also of an edit, is that of the first of these \
         that applies: a rule of the account, the suffix of the name, approval at once. A step at 0s \
         is part of the call: its response shows the result. A step that the \
         [lifecycle](lifecycle.md) does not allow when it is due is skipped. An edit drops the steps \
         of earlier versions, except the end of a pause.\n\n\
         | outcome | steps without duration | steps with a duration of 10m |\n|---|---|---|\n",
    );
    for value in Outcome::VALUES {
        let _ = writeln!(
            page,
            "| `{value}` | {} | {} |",
            steps_text(&format!("x_{value}")),
            steps_text(&format!("x_{value}_{EXAMPLE_DURATION}"))
        );
    }
    page.push_str("\nA template that already has the announced category is only approved.\n");
}

/// The steps of a template with this name, whose category no outcome has.
fn steps_text(name: &str) -> String {
    let outcome = Suffix::of(name).map(|it| it.outcome);
    let category =
        if outcome == Some(Outcome::ToUtility) { Category::Marketing } else { Category::Utility };
    let steps = steps(name, category, &ReviewRules::default());
    let text = |ScriptStep { after, action }: &ScriptStep| {
        let argument = action.argument().map(|it| format!(" {it}")).unwrap_or_default();
        format!("{}: {}{argument}", duration::format(*after), action.as_str())
    };
    if steps.is_empty() {
        return "none: PENDING until a reviewer decides".to_owned();
    }
    steps.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn suffixes_section(page: &mut String) {
    page.push_str(
        "\n## Suffixes\n\nA name that ends in one of these decides the review without any rule. Other \
         characters have to precede the suffix.\n\n\
         | form | examples |\n|---|---|\n\
         | `_` outcome | `order_approve`, `order_pending`, `order_to_marketing`, `order_quality_red` |\n\
         | `_` outcome `_` duration | `order_pending_10m`, `order_pause_1h30m` |\n\
         | `_reject_` reason | `order_reject_promotional` |\n\
         | `_reject_` reason `_` duration | `order_reject_scam_2h` |\n\n",
    );
    let reasons: Vec<String> =
        RejectionReason::VALUES.iter().map(|value| format!("`{}`", value.to_lowercase())).collect();
    let _ = writeln!(
        page,
        "Reasons: {}; without a reason, `invalid_format`.\n\n\
         A duration is a number with `s`, `m`, `h` or `d`, or several of them in this descending \
         order: `d`, `h`, `m`, `s`. It is at least `1s` in a name and at most `365d`.",
        reasons.join(", ")
    );
}

fn rules_section(page: &mut String) {
    let _ = writeln!(
        page,
        "\n## Review rules\n\n`{{\"rules\": [rule, …]}}`, at most {MAX_RULES}; the first rule that \
         matches applies.\n"
    );
    object_table(page, &REVIEW_RULE);
}

fn clock_section(page: &mut String) {
    page.push_str(
        "\n## Clock\n\nA change of the clock has exactly one of these fields. The clock of a new account \
         runs and shows real time. It never moves back, and it is at most ten years ahead.\n\n",
    );
    object_table(page, &CLOCK_CHANGE);
}

fn recipients_section(page: &mut String) {
    page.push_str(
        "\n## Recipients\n\nA message to any other number is read.\n\n\
         | number | result |\n|---|---|\n",
    );
    for recipient in MAGIC_RECIPIENTS {
        let result = match recipient.fate {
            MessageFate::Read => "read".to_owned(),
            MessageFate::Fails(code) => {
                format!("the message fails: a status `failed` with code {code}")
            }
            MessageFate::Refused(code) => format!("the send is refused with code {code}"),
        };
        let _ = writeln!(page, "| `+{}` | {result} |", recipient.number);
    }
    let times = |fate| {
        let steps = timeline(fate).into_iter();
        let steps = steps
            .map(|it| format!("`{}` after {}", it.status.as_str(), duration::format(it.after)));
        steps.collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(
        page,
        "\nStatuses: {}. Of a message that fails: {}. One webhook request contains at most \
         {MAX_STATUSES_PER_REQUEST} statuses. Messages are kept for 24 hours of real time, at most \
         {} of an account.",
        times(MessageFate::Read),
        times(MessageFate::Fails(0)),
        grouped(MAX_KEPT)
    );
}

fn faults_section(page: &mut String) {
    let _ = writeln!(
        page,
        "\n## Faults\n\nAn account has at most {MAX_FAULTS} faults; beyond that, a new one replaces \
         the oldest that is spent.\n"
    );
    object_table(page, &FAULT);
    page.push_str("\n| kind | what happens | calls |\n|---|---|---|\n");
    for value in FaultKind::VALUES {
        let Some(kind) = FaultKind::parse(value) else { continue };
        let fits: Vec<&str> = Call::VALUES
            .iter()
            .filter(|call| Call::parse(call).is_some_and(|call| kind.fits(call)))
            .copied()
            .collect();
        let calls = match &*fits {
            all if all.len() == Call::VALUES.len() => "all".to_owned(),
            [one] => format!("`{one}`"),
            _ => "all but `webhook`".to_owned(),
        };
        let _ = writeln!(page, "| `{value}` | {} | {calls} |", kind.about());
    }
    page.push_str(
        "\nThe first fault that strikes decides, in the order of creation. A `share` is deterministic: \
         of the first n matching calls, n times the share are struck, rounded down.\n\n\
         The header `Galley-Fault` strikes a single call: `close_before`, `close_after_commit`, \
         `truncate`, `error`, `error=131026`, `delay=5s`.\n\n\
         A delay needs room among the requests that wait, of which an account has a share; without it, \
         the call is refused with 400 and the code 80008, and nothing is done.\n",
    );
}

fn failures_section(page: &mut String) {
    let _ = writeln!(
        page,
        "\n## Failures\n\nThe number in the first column is the `code` of a fault of the kind `error`; \
         without one, {DEFAULT_CODE}."
    );
    for (title, failures) in
        [("Templates and accounts", TEMPLATE_FAILURES), ("Sends", SEND_FAILURES)]
    {
        let _ = writeln!(
            page,
            "\n### {title}\n\n| number | code | subcode | status | transient | title |\n\
             |---|---|---|---|---|---|"
        );
        for failure in failures {
            let Failure { code, subcode, status, title, is_transient, .. } = failure;
            let range = if *code == 200 { "–299" } else { "" };
            let subcode = subcode.map_or("–".to_owned(), |it| it.to_string());
            let transient = if *is_transient { "yes" } else { "no" };
            let _ = writeln!(
                page,
                "| {}{range} | {code}{range} | {subcode} | {status} | {transient} | {title} |",
                failure.number()
            );
        }
    }
}

/// A table of the fields of a document.
fn object_table(page: &mut String, object: &ObjectSchema) {
    page.push_str("| field | required | description |\n|---|---|---|\n");
    for field in object.fields {
        let required = if field.presence == Presence::Required { "yes" } else { "no" };
        let _ = writeln!(page, "| `{}` | {required} | {} |", field.name, field.about);
    }
}

/// A number with commas: `10,000`.
fn grouped(number: u64) -> String {
    let thousands = number / 1_000;
    if thousands == 0 { number.to_string() } else { format!("{thousands},{:03}", number % 1_000) }
}
