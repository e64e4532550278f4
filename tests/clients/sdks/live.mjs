// One conversation over Gemini Live with @google/genai: node live.mjs URL SAY...
//
// Each SAY is a text of the user, or "sound" for 200 ms of it. Calls are answered with "rain". Prints
// what came as one JSON object.
import { GoogleGenAI, Modality } from "@google/genai";

const [url, ...says] = process.argv.slice(2);
const seen = { messages: [], closed: null };
let wake = () => {};
const client = new GoogleGenAI({ apiKey: "AIza-test", httpOptions: { baseUrl: url } });
const session = await client.live.connect({
  model: "gemini-live",
  config: {
    responseModalities: [says.includes("sound") ? Modality.AUDIO : Modality.TEXT],
    inputAudioTranscription: {},
    outputAudioTranscription: {},
  },
  callbacks: {
    onmessage(message) {
      seen.messages.push(message);
      if (message.toolCall) {
        const functionResponses = message.toolCall.functionCalls.map(({ id, name }) => ({
          id,
          name,
          response: { output: "rain" },
        }));
        session.sendToolResponse({ functionResponses });
      }
      if (message.serverContent?.turnComplete) wake();
    },
    onclose(event) {
      seen.closed = { code: event.code, reason: event.reason };
      wake();
    },
  },
});
for (const say of says) {
  const turn = new Promise((resolve) => (wake = resolve));
  if (say === "sound") {
    const data = Buffer.alloc(6400).toString("base64");
    session.sendRealtimeInput({ audio: { data, mimeType: "audio/pcm;rate=16000" } });
  } else {
    session.sendClientContent({ turns: say });
  }
  await turn;
}
session.close();
console.log(JSON.stringify(seen));
