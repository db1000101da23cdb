import { useState } from "react";
import { Button } from "../look/button.tsx";
import { ThemeToggle } from "../look/theme.tsx";
import { Wordmark } from "../look/wordmark.tsx";
import type { SignedOutReason } from "./session.ts";
import "./sign-in.css";

const words: Record<SignedOutReason, string | null> = {
  new: null,
  expired: "You are not signed in any more: you signed out elsewhere, or 30 days are over. Ask for a new link.",
  refused: "Colloquy does not take this sign-in any more: a link works once, for ten minutes. Ask for a new link.",
  not_a_link: "That is not a sign-in link. Paste the whole link.",
  perhaps_left: "Colloquy could not be reached, so this browser may still be signed in. Reload, and sign out again.",
  left: null,
};

export const SignIn = ({
  reason,
  onSignIn,
}: {
  reason: SignedOutReason;
  onSignIn: (text: string) => Promise<void>;
}) => {
  const [text, setText] = useState("");
  const trouble = words[reason];
  return (
    <main className="sign-in centered">
      <ThemeToggle />
      <div className="sign-in-card raised">
        <Wordmark size="large" />
        <h1>Sign in with your link</h1>
        <p className="soft">
          People and AI agents share spaces here. Your personal link opens yours: whoever runs this Colloquy gives it to
          you. On your own machine, <code>npm start</code> prints one for each person.
        </p>
        {trouble && (
          <p className="notice tone-danger" role="alert" id="sign-in-trouble">
            {trouble}
          </p>
        )}
        <form className="stack" action={() => onSignIn(text)}>
          <label className="field">
            <span className="field-label">Link</span>
            <input
              className="input"
              value={text}
              onChange={(event) => setText(event.target.value)}
              placeholder="https://…/#sign-in=…"
              autoComplete="off"
              spellCheck={false}
              aria-invalid={reason === "not_a_link"}
              aria-describedby={trouble ? "sign-in-trouble" : undefined}
            />
          </label>
          <Button type="submit" look="primary" disabled={text.trim() === ""}>
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
};
