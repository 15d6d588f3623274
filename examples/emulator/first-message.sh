#!/bin/sh
# From a new template to the first asserted message, with curl. Start the emulator first:
#
#   galley emulator > emulator.env &
#   sh first-message.sh emulator.env
#
# Needs curl. The variables are those that `galley emulator` prints.
set -eu

# shellcheck source=/dev/null
. "${1:?usage: first-message.sh FILE, which contains what galley emulator prints}"
graph=$WHATSAPP_API_URL/v23.0

call() {
    curl --silent --show-error --noproxy '*' -H "Authorization: Bearer $WHATSAPP_TOKEN" \
        -H 'Content-Type: application/json' "$@"
    echo
}

expect() {
    case $2 in
    *"$1"*) echo "ok: $1" ;;
    *)
        echo "expected $1 in: $2" >&2
        exit 1
        ;;
    esac
}

# 1. The name ends in `_pending_10m`: the template stays PENDING for ten minutes.
created=$(call "$graph/$WHATSAPP_BUSINESS_ACCOUNT_ID/message_templates" -d '{
    "name": "order_shipped_pending_10m", "language": "en_US", "category": "UTILITY",
    "components": [{"type": "BODY", "text": "Hi {{1}}, your order {{2}} is on its way.",
                    "example": {"body_text": [["Ada", "A-1024"]]}}]}')
expect '"status":"PENDING"' "$created"

# 2. Ten minutes later it is approved. The clock of the account moves, nothing waits.
moved=$(call "$GALLEY_BASE_URL/emulator/clock" -d '{"advance": "10m"}')
expect '"applied":1' "$moved"

# 3. A message without its second parameter is refused as Meta refuses it.
send() {
    call "$graph/$WHATSAPP_PHONE_NUMBER_ID/messages" -d '{
        "messaging_product": "whatsapp", "to": "15550109999", "type": "template",
        "template": {"name": "order_shipped_pending_10m", "language": {"code": "en_US"},
                     "components": [{"type": "body", "parameters": ['"$1"']}]}}'
}
refused=$(send '{"type": "text", "text": "Ada"}')
expect '"code":132000' "$refused"

# 4. A complete message is accepted, and three seconds later it was read.
sent=$(send '{"type": "text", "text": "Ada"}, {"type": "text", "text": "A-1024"}')
expect '"id":"wamid.sandbox.' "$sent"
call "$GALLEY_BASE_URL/emulator/clock" -d '{"advance": "3s"}' >/dev/null

# 5. What the recipient reads.
messages=$(call "$GALLEY_BASE_URL/emulator/messages")
expect 'Hi Ada, your order A-1024 is on its way.' "$messages"
expect '"status":"read"' "$messages"
