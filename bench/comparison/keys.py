"""Keys for the peers and for clients that do not use Atoll. They have the type of the keys of Atoll."""

# ECDSA P-256 with SHA-256, and a leaf directly below its CA, like those of `atoll certs`: a handshake with a peer
# must need the same signatures and verifications as one with a proxy-server.
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-sha256", "-nodes", "-days", "2"]
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{}"


class Keys:
    """`ca`, `server` (for localhost, 127.0.0.1 and `address`) and `client`, each with a .crt and a .key."""

    def __init__(self, folder, processes, address="127.0.0.1"):
        self.folder = folder
        folder.mkdir()
        self.ca = self.file("ca.crt")
        self.server = [self.file("server.crt"), self.file("server.key")]
        self.client = [self.file("client.crt"), self.file("client.key")]

        def make(name, subject, *extensions):
            words = [word for extension in extensions for word in ("-addext", extension)]
            signer = [] if name == "ca" else ["-CA", self.ca, "-CAkey", self.file("ca.key")]
            processes.run("openssl", "req", "-x509", *EC, "-subj", subject, "-keyout", self.file(f"{name}.key"), "-out",
                          self.file(f"{name}.crt"), *signer, *words)
        make("ca", "/CN=bench peers")
        leaf = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
        make("server", "/CN=localhost", *leaf, "extendedKeyUsage=serverAuth", NAMES.format(address))
        make("client", "/O=system:masters/CN=admin", *leaf, "extendedKeyUsage=clientAuth")

    def file(self, name):
        return self.folder / name
