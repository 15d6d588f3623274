//! The time on the clocks of emulator accounts.

use galley_domain::id::AccountId;
use galley_store::Account;
use jiff::Timestamp;

use super::problem::Problem;
use crate::app::App;

/// The time on the clock of an account; `None` if it is not an emulator.
pub(crate) async fn of_account(app: &App, account: &Account) -> Result<Option<Timestamp>, Problem> {
    if account.emulator.is_none() {
        return Ok(None);
    }
    of_account_id(app, account.id).await
}

/// The time on the clock of the account with this id; `None` if it is not an emulator.
pub(crate) async fn of_account_id(
    app: &App,
    account: AccountId,
) -> Result<Option<Timestamp>, Problem> {
    let clock = app.store().emulator_clock(account).await?;
    Ok(clock.map(|clock| clock.now(app.clock().now())))
}
