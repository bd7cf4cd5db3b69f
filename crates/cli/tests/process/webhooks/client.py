"""The package of Standard Webhooks, as it comes. Arguments: `verify SECRET BODY HEADERS`, which says whether the message
is accepted and why not, or `sign SECRET BODY ID`, which says its headers. Headers are JSON; what it says is, too."""

import json
import sys
from datetime import datetime, timezone

from standardwebhooks import Webhook, WebhookVerificationError

COMMAND, SECRET, BODY, REST = sys.argv[1:]


def verify():
    try:
        return {"read": Webhook(SECRET).verify(BODY, json.loads(REST))}
    except WebhookVerificationError as error:
        return {"error": str(error)}


def sign():
    now = datetime.now(tz=timezone.utc)
    signature = Webhook(SECRET).sign(REST, now, BODY)
    return {"webhook-id": REST, "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}


print(json.dumps({"verify": verify, "sign": sign}[COMMAND]()))
