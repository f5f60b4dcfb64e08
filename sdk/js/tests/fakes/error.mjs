// An error of the host, as a component sees it.
export class HostError extends Error {
  constructor(tag, val) {
    super(tag);
    this.payload = { tag, val };
  }
}
