// Puts the chunks of OpenAI's legacy Completions together: those of Chat Completions, but for the
// text, which is in the choice itself. The API has no calls and no reasoning.

import { list, object, string } from "./answer.mjs";
import { Chat } from "./chat.mjs";

export class Completions extends Chat {
  feed(payload, event = null) {
    for (const choice of list(object(payload).choices).map(object)) {
      // The request has n=1 [compl-n-choices].
      if (!this.failed && !choice.index) this.add("text", string(choice.text));
    }
    super.feed(payload, event);
  }
}
