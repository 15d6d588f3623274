//! The component `tap_target_configuration`: titles that the recipient reads instead of URLs.

use super::{
    position::Position,
    translator::{Part, Translator},
};
use crate::{document::Json, render};

const NAME: &str = "tap_target_configuration";

impl<'d> Translator<'d> {
    /// Checks the URLs and their titles. The renderer does not know them: they are no part of the
    /// texts.
    pub(super) fn tap_target(&mut self, part: &Part, component: &Position<'d>) {
        let parameters = self.parameters(part, component);
        self.expect_one(part, &parameters);
        let Some(parameter) = parameters.items().next() else { return };
        let Some(targets) = self.typed_value(part, &parameter, NAME) else { return };
        if !matches!(targets.value, Some(Json::Array(_))) || targets.count() == 0 {
            let message = "must be a list of objects with `url` and `title`";
            self.report_invalid(part, &targets, message);
        }
        for target in targets.items() {
            let (url, title) = (target.field("url"), target.field("title"));
            if self.is_present(part, &url) {
                let message = match url.as_str() {
                    Some(url) => render::url_problem(url),
                    None => Some("must be a string".to_owned()),
                };
                if let Some(message) = message {
                    self.report_invalid(part, &url, &format!("`url` {message}"));
                }
            }
            let is_text = |it: &str| !it.trim().is_empty();
            if self.is_present(part, &title) && !title.as_str().is_some_and(is_text) {
                self.report_invalid(part, &title, "`title` must be a string that is not empty");
            }
        }
    }
}
