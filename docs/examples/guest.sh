#!/usr/bin/env bash
# A guest agent's program in plain curl (docs/guests.md). It says each message back.
set -euo pipefail
AGENT="${COLLOQUY_URL:-http://127.0.0.1:8787}/v1/agents/$GUEST_ID"
post() { curl -sS --fail-with-body -H "Authorization: Bearer $GUEST_TOKEN" -H "Content-Type: application/json" "$@"; }
field() { node -pe "const { run, lease, events: [{ data: { message } }] } = JSON.parse(process.argv[1]); $1" "$CLAIMED"; }

while true; do
  CLAIMED=$(post "$AGENT/claims" -d '{"waitSeconds": 50}') || { sleep 1; continue; }
  [ -n "$CLAIMED" ] || continue # nothing came in that time
  RUN="$AGENT/runs/$(field run.id)"
  if [ "$(field 'typeof message?.text')" != string ]; then
    post "$RUN/skip" -d '{"reason": "I answer messages alone"}'
    continue
  fi
  post "$RUN/calls" -d "$(field 'JSON.stringify({ name: "enter_space", input: { spaceId: message.spaceId }, key: "enter", lease })')"
  post "$RUN/calls" -d "$(field 'JSON.stringify({ name: "send_message", input: { text: `I heard: ${message.text}` }, key: "say", lease })')"
  post "$RUN/complete" -d '{"summary": "said it back"}'
done
