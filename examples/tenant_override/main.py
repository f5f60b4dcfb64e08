"""`acme/tools/http`: answers requests from a record instead of sending them."""

import noetl

RECORD = {
    "/orders": {"page": 1, "pages": 1, "orders": [{"id": 1, "customer": "Ada", "total": 42}]},
}


def call(input):
    path = "/" + input["url"].split("//", 1)[-1].partition("/")[2].split("?")[0]
    noetl.log.info("answered from the record", path=path)
    if path not in RECORD:
        return {"status_code": 404, "headers": {}, "data": None, "body": None}
    return {"status_code": 200, "headers": {"x-recorded": "true"}, "data": RECORD[path], "body": RECORD[path]}
