import hashlib


class Payload:
    def __init__(self, data, media_type="application/octet-stream"):
        self.data, self.type = data, media_type

    def size(self):
        return len(self.data)

    def media_type(self):
        return self.type

    def digest(self):
        return hashlib.sha256(self.data).hexdigest()

    def read(self, offset, length):
        return self.data[offset : offset + length]


class Writer:
    def __init__(self, media_type):
        self.type, self.data = media_type, b""

    def write(self, data):
        self.data += data

    def splice(self, source, offset, length):
        self.data += source.data[offset : offset + length]

    @classmethod
    def finish(cls, this):
        return Payload(this.data, this.type)
