//! Rendering templates of the `whatsapp` rulebook: what comes out of good values for each kind of
//! template, and each rule of values with the smallest breach and the nearest good values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod render_whatsapp {
    mod fixture;
    mod kinds;
    mod limits;
    mod payloads;
    mod table;
    mod told;
}
