"""Has moto check the signatures that stand in the query of an address: by itself it knows those in a header only.

Python runs it as sitecustomize.py when it starts. What a signature has to be is worked out by botocore, AWS' own code.
"""

from urllib.parse import parse_qsl, urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from moto.iam import access_control

SAID = "Credential={X-Amz-Credential}, SignedHeaders={X-Amz-SignedHeaders}, Signature={X-Amz-Signature}"


class Request(access_control.S3IAMRequest):
    def __init__(self, *, path, headers, **rest):
        self._said = dict(parse_qsl(urlsplit(path).query))
        self._in_query = "X-Amz-Signature" in self._said
        if self._in_query:
            path = path.replace("&X-Amz-Signature=" + self._said["X-Amz-Signature"], "")
            headers = {**headers, "Authorization": SAID.format(**self._said)}
        super().__init__(path=path, headers=headers, **rest)

    def _create_auth(self, credentials):
        if not self._in_query:
            return super()._create_auth(credentials)
        return S3SigV4QueryAuth(credentials, self._service, self._region)

    def _create_aws_request(self):
        if not self._in_query:
            return super()._create_aws_request()
        names = self._said["X-Amz-SignedHeaders"].split(";")
        headers = self._create_headers_for_aws_request(names, self._headers)
        request = AWSRequest(method=self._method, url=self._path, headers=headers)
        request.context["timestamp"] = self._said["X-Amz-Date"]
        return request


access_control.S3IAMRequest = Request
