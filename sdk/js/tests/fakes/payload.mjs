import { createHash } from 'node:crypto';

export class Payload {
  constructor(data, type = 'application/octet-stream') {
    this.data = data;
    this.type = type;
  }
  size() {
    return BigInt(this.data.length);
  }
  mediaType() {
    return this.type;
  }
  digest() {
    return createHash('sha256').update(this.data).digest('hex');
  }
  read(offset, length) {
    return this.data.slice(Number(offset), Number(offset) + length);
  }
}

export class Writer {
  constructor(type) {
    this.type = type;
    this.data = new Uint8Array();
  }
  write(bytes) {
    this.data = Uint8Array.from([...this.data, ...bytes]);
  }
  splice(source, offset, length) {
    this.write(source.data.slice(Number(offset), Number(offset + length)));
  }
  static finish(writer) {
    return new Payload(writer.data, writer.type);
  }
}
