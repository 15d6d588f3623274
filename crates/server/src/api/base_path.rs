//! Where the calls of API v1.0 are: one place for programs, another for the console.

use std::borrow::Cow;

/// The base path of calls with an API key in the path.
pub(crate) const V1: &str = "/api/v1.0/{phone_number_id}/{key}";

/// The base path of the same calls for the console, whose cookie stands for key and token.
pub(crate) const CONSOLE: &str = "/console/api/{phone_number_id}";

/// A place where the calls of API v1.0 are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BasePath {
    /// For programs, which send a key and a token.
    V1,
    /// For the console, which sends a cookie.
    Console,
}

impl BasePath {
    /// The route of a call here; `route` is the one for programs.
    pub(crate) fn at(self, route: &'static str) -> Cow<'static, str> {
        match (self, route.strip_prefix(V1)) {
            (Self::Console, Some(call)) => Cow::Owned([CONSOLE, call].concat()),
            _ => Cow::Borrowed(route),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_route_without_a_key_in_the_console() {
        let route = "/api/v1.0/{phone_number_id}/{key}/events";
        assert_eq!(BasePath::V1.at(route), route);
        assert_eq!(BasePath::Console.at(route), "/console/api/{phone_number_id}/events");
    }
}
