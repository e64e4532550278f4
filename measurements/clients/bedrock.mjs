// The AWS SDK's client for Amazon Bedrock, as the adapters set it up.
import { BedrockRuntimeClient } from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";

import { limitOf, retriesOf } from "./faults.mjs";
import { API_KEY } from "./job.mjs";

export const REGION = "us-east-1";
export const CREDENTIALS = { accessKeyId: API_KEY, secretAccessKey: API_KEY };

/** A client of a job; its default handler would speak HTTP/2 to `http://` endpoints. */
export const bedrockOf = (job) =>
  new BedrockRuntimeClient({
    endpoint: job.base_url,
    region: REGION,
    credentials: CREDENTIALS,
    maxAttempts: retriesOf(job) + 1,
    requestHandler: new NodeHttpHandler({ socketTimeout: limitOf(job) }),
  });
