// A shop's client as its users have it, with its own limiter unchanged. Its address is fixed to
// https and myshopify.com; the agent, which is one of its options, connects to the simulator
// instead, without TLS.

import { Agent } from 'node:https';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import Shopify from 'shopify-api-node';

/** The wait that Shopify's documentation recommends without better information. */
const ADVISED_MS = 1_000;
/** Its configured retries. It repeats a throttled query as often as needed, whatever the number. */
const RETRIES = 10;

class ToSimulator extends Agent {
  #port;

  constructor(port) {
    super({ keepAlive: true });
    this.#port = port;
  }

  createConnection() {
    return connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
  }
}

let agent;

/** The client of one shop. */
export class Client {
  #shopify;

  constructor(shop, { port, token, limiter }) {
    agent ??= new ToSimulator(port);
    const limits = limiter === 'autoLimit' ? { autoLimit: true } : { maxRetries: RETRIES };
    this.shop = shop;
    this.#shopify = new Shopify({
      shopName: shop.name,
      accessToken: token,
      apiVersion: '2026-04',
      agent: { https: agent },
      ...limits,
    });
  }

  /** Makes a call until it succeeds; does as Shopify advises where the client leaves it to us. */
  async call(query) {
    for (;;) {
      try {
        return await this.#shopify.graphql(query);
      } catch (error) {
        if (error.extensions?.code !== 'THROTTLED') throw error;
        await sleep(ADVISED_MS);
      }
    }
  }
}
