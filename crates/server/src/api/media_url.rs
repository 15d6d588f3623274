//! The URLs of media samples.

use galley_domain::template::sample;

use crate::app::App;

/// The public URL of the sample with this handle; `None` if it was not uploaded to Galley.
pub(crate) fn for_handle(app: &App, handle: &str) -> Option<String> {
    let name = sample::name(handle)?;
    Some(format!("{}/media/{name}", app.public_url()))
}

/// The name of the sample at this URL; `None` if it is not a media URL of this service.
pub(crate) fn sample_name<'a>(app: &App, url: &'a str) -> Option<&'a str> {
    let name = url.strip_prefix(app.public_url())?.strip_prefix("/media/")?;
    Some(name).filter(|name| sample::is_name(name))
}
