/* agent_http_test.c - replies of metadata services */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "agent/http.h"

Test(agent_http, reads_replies)
{
    static const struct {
        const char *reply;
        int status;
        const char *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nTRUE and more", 200, "TRUE"},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end"},
        {"HTTP/1.0 404 Not Found\r\ncontent-length:0\r\n\r\n", 404, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
         200, "abcde"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\ncut", 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 0, ""},
        {"HTTP/1.1 200 OK\r\n", 0, ""},
        {"SSH-2.0-x\r\n\r\n", 0, ""},
        {"", 0, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *reply = strdup(rows[i].reply);
        const char *body = "";

        cr_expect_eq(http_parse(reply, strlen(reply), &body), rows[i].status, "row %zu", i);
        cr_expect_str_eq(body, rows[i].body, "row %zu", i);
        free(reply);
    }
}

Test(agent_http, takes_numeric_addresses_only)
{
    static const struct {
        const char *url;
        bool good;
        const char *address;
        uint16_t port;
    } rows[] = {
        {"http://169.254.169.254", true, "169.254.169.254", 80},
        {"http://127.0.0.1:8080/", true, "127.0.0.1", 8080},
        {"http://localhost:1", true, "127.0.0.1", 1},
        {"https://127.0.0.1", false, "", 0},
        {"http://metadata.example", false, "", 0}, /* a look-up would block */
        {"http://127.0.0.1:0", false, "", 0},
        {"http://127.0.0.1:99999", false, "", 0},
        {"http://127.0.0.1/path", false, "", 0},
        {"", false, "", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_base base = {0};

        cr_expect_eq(http_base_read(rows[i].url, &base), rows[i].good, "row %zu", i);
        if (!rows[i].good)
            continue;
        cr_expect_eq(base.address, inet_addr(rows[i].address), "row %zu", i);
        cr_expect_eq(base.port, htons(rows[i].port), "row %zu", i);
    }
}
