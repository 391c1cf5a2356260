/* rpc_keys_test.c - certificates in files, who is let in, who may do what */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "rpc/peer.h"

#define WAIT_MS 60000

/* ---- a directory of keys --------------------------------------------------------------------- */

static char dir[] = "/tmp/rpc-keys-XXXXXX";

static const char *in_dir(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof *paths, "%s/%s", dir, name);
    return path;
}

static void keygen(const char *name, enum message_role role)
{
    struct spec_error err = {""};

    cr_assert(eq(int,
                 rpc_keygen(in_dir("keys"), name, role, NULL,
                            in_dir(role == ROLE_NONE ? "keys" : "own"), &err),
                 0),
              "%s", err.text);
}

static void setup(void)
{
    rpc_prepare_process();
    cr_assert(mkdtemp(dir) != NULL);
    keygen("server", ROLE_NONE);
    keygen("a1", ROLE_AGENT);
    keygen("view", ROLE_VIEWER);
    keygen("op", ROLE_OPERATOR);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void teardown(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(keys, .init = setup, .fini = teardown);

static struct rpc_auth *open_auth(void)
{
    struct rpc_auth *a = NULL;
    struct spec_error err = {""};

    cr_assert(eq(int, rpc_auth_open(in_dir("keys"), &a, &err), 0), "%s", err.text);
    return a;
}

static struct rpc_identity *identity(const char *name, const char *server_key)
{
    struct rpc_identity *id = NULL;
    struct spec_error err = {""};
    char path[64];

    snprintf(path, sizeof path, "own/%s.key", name);
    cr_assert(eq(int, rpc_identity_read(in_dir(path), server_key, &id, &err), 0), "%s", err.text);
    return id;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *out = fopen(path, "w");

    cr_assert(out != NULL);
    fputs(text, out);
    fclose(out);
    cr_assert(eq(int, chmod(path, mode), 0));
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    cr_assert(eq(int, stat(path, &st), 0), "%s", path);
    return st.st_mode & 0777;
}

/* ---- files ----------------------------------------------------------------------------------- */

Test(keys, makes_pairs_that_only_their_owner_can_read)
{
    struct spec_error err = {""};

    cr_expect(eq(u32, mode_of(in_dir("keys/server.key_secret")), 0600));
    cr_expect(eq(u32, mode_of(in_dir("own/a1.key_secret")), 0600));
    cr_expect(eq(u32, mode_of(in_dir("own/a1.key")), 0644));
    cr_expect(eq(u32, mode_of(in_dir("keys/allowed/a1.key")), 0644));
    cr_expect(ne(int, access(in_dir("keys/allowed/server.key"), F_OK), 0));
    cr_expect(ne(int, access(in_dir("keys/allowed/a1.key_secret"), F_OK), 0));
    cr_assert(eq(int, rpc_keygen(NULL, "alone", ROLE_AGENT, NULL, in_dir("own"), &err), 0));
    cr_expect(ne(int, access(in_dir("keys/allowed/alone.key"), F_OK), 0));
}

Test(keys, never_writes_over_a_pair)
{
    static const char *const there[] = {"own/new.key_secret", "own/new.key",
                                        "keys/allowed/new.key"};

    for (size_t i = 0; i < 3; i++) {
        struct spec_error err = {""};
        const char *path = in_dir(there[i]);

        write_file(path, "mine", 0600);
        cr_expect(eq(int, rpc_keygen(in_dir("keys"), "new", ROLE_AGENT, NULL, in_dir("own"), &err),
                     -EEXIST));
        cr_expect(strstr(err.text, there[i]) != NULL, "%s", err.text);
        cr_assert(eq(int, unlink(path), 0));
        for (size_t k = 0; k < 3; k++) /* nothing half is left behind */
            cr_expect(ne(int, access(in_dir(there[k]), F_OK), 0), "%s", there[k]);
    }
    keygen("new", ROLE_AGENT);
}

Test(keys, takes_only_names_that_are_file_names)
{
    static const char *const bad[] = {"", ".", "..", ".x", "a/b", "../a"};
    char longest[102];

    memset(longest, 'n', sizeof longest);
    longest[101] = '\0';
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *name = i < sizeof bad / sizeof *bad ? bad[i] : longest;
        struct spec_error err = {""};

        cr_expect(eq(int, rpc_keygen(in_dir("keys"), name, ROLE_AGENT, NULL, in_dir("own"), &err),
                     -EINVAL),
                  "%s", name);
        cr_expect(strstr(err.text, "accepted") != NULL, "%s", err.text);
    }
}

Test(keys, reads_an_identity_by_either_name_of_its_file)
{
    struct rpc_auth *a = open_auth();
    struct rpc_identity *id = identity("a1", rpc_auth_public_key(a));
    struct spec_error err = {""};

    rpc_identity_free(&id);
    cr_expect(id == NULL);
    cr_expect(
        eq(int,
           rpc_identity_read(in_dir("own/a1.key_secret"), in_dir("keys/server.key"), &id, &err), 0),
        "%s", err.text);
    rpc_identity_free(&id);
    rpc_auth_close(&a);
}

#define GOOD_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define GOOD_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"

Test(keys, says_what_is_wrong_with_a_secret_file)
{
    static const struct {
        const char *text;
        mode_t mode;
        int want;
        const char *says;
    } rows[] = {
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0600, 0, ""},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0400, 0, ""},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0640, -EACCES, "others can read it; accepted: mode 0600"},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0604, -EACCES, "others can read it"},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0602, -EACCES, "others can"},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n", 0600, -EINVAL, "curve/secret-key"},
        {"curve\n    secret-key = \"" GOOD_SECRET "\"\n", 0600, -EINVAL, "curve/public-key"},
        {"curve\n    public-key = \"" GOOD_SECRET "\"\n    secret-key = \"" GOOD_SECRET "\"\n",
         0600, -EINVAL, "does not belong to the secret one"},
        {"curve\n    public-key = \"x\"\n    secret-key = \"x\"\n", 0600, -EINVAL, "40 characters"},
        {"", 0600, -EINVAL, "no certificate"},
        {"}}}}\n====\n", 0600, -EINVAL, "no certificate"},
        {"{\"curve\":1}", 0600, -EINVAL, "no certificate"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = in_dir("own/x.key_secret");
        struct spec_error err = {""};
        struct rpc_identity *id = NULL;

        write_file(path, rows[i].text, rows[i].mode);
        cr_expect(eq(int, rpc_identity_read(path, GOOD_PUBLIC, &id, &err), rows[i].want),
                  "row %zu: %s", i, err.text);
        cr_expect(strstr(err.text, rows[i].says) != NULL, "row %zu: %s", i, err.text);
        rpc_identity_free(&id);
        unlink(path);
    }
}

Test(keys, says_what_else_is_wrong_with_an_identity)
{
    struct rpc_identity *id = NULL;
    struct spec_error err = {""};
    char *large = calloc(1, 70001);

    cr_assert(large != NULL);
    memset(large, '#', 70000);
    cr_expect(eq(int, rpc_identity_read(in_dir("own/none.key"), GOOD_PUBLIC, &id, &err), -ENOENT));
    cr_expect(strstr(err.text, "none.key_secret") != NULL, "%s", err.text);
    cr_expect(eq(int, rpc_identity_read(in_dir("own"), GOOD_PUBLIC, &id, &err), -EINVAL));
    cr_expect(eq(int, rpc_identity_read(in_dir("own/a1.key"), "short", &id, &err), -ENOENT));
    cr_expect(eq(int, rpc_identity_read(in_dir("own/a1.key"), in_dir("own"), &id, &err), -EINVAL));
    write_file(in_dir("own/large.key_secret"), large, 0600);
    cr_expect(eq(int, rpc_identity_read(in_dir("own/large.key"), GOOD_PUBLIC, &id, &err), -EINVAL));
    cr_expect(strstr(err.text, "too large") != NULL, "%s", err.text);
    cr_expect(id == NULL);
    free(large);
}

Test(keys, refuses_a_secret_that_belongs_to_another_user)
{
    struct rpc_identity *id = NULL;
    struct spec_error err = {""};

    if (chown(in_dir("own/a1.key_secret"), 12345, (gid_t)-1) < 0)
        cr_skip_test("only root can give files away");
    cr_expect(eq(int, rpc_identity_read(in_dir("own/a1.key"), GOOD_PUBLIC, &id, &err), -EACCES));
    cr_expect(strstr(err.text, "another user") != NULL, "%s", err.text);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void read_key(const char *path, char ret[RPC_KEY])
{
    FILE *in = fopen(path, "r");
    char line[256];
    const char *at;

    cr_assert(in != NULL);
    while (fgets(line, sizeof line, in))
        if ((at = strstr(line, "public-key = \"")))
            snprintf(ret, RPC_KEY, "%.40s", at + strlen("public-key = \""));
    fclose(in);
}

Test(keys, of_agents_speak_for_the_node_that_they_name)
{
    static const struct {
        const char *owner, *node;
        enum rpc_claim want;
    } rows[] = {{"of1", "n1", RPC_CLAIM_OWN},     {"of1", "n2", RPC_CLAIM_FOREIGN},
                {"of2", "n2", RPC_CLAIM_OWN},     {"of2", "n", RPC_CLAIM_FOREIGN},
                {"a1", "n1", RPC_CLAIM_FOREIGN},  {"a1", "n", RPC_CLAIM_FREE},
                {"alone", "n", RPC_CLAIM_FOREIGN}};
    struct spec_error err = {""};
    struct rpc_auth *a;

    for (int i = 1; i <= 2; i++) {
        const char *name = i == 1 ? "of1" : "of2", *node = i == 1 ? "n1" : "n2";

        cr_assert(
            eq(int, rpc_keygen(in_dir("keys"), name, ROLE_AGENT, node, in_dir("own"), &err), 0));
    }
    cr_assert(eq(int, rpc_keygen(NULL, "alone", ROLE_AGENT, NULL, in_dir("own"), &err), 0));
    cr_expect(eq(int, rpc_keygen(NULL, "x", ROLE_AGENT, "a/b", in_dir("own"), &err), -EINVAL));
    a = open_auth();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[RPC_KEY], path[64];

        snprintf(path, sizeof path, "own/%s.key", rows[i].owner);
        read_key(in_dir(path), key);
        cr_expect(eq(int, (int)rpc_auth_claim(a, key, rows[i].node), (int)rows[i].want), "row %zu",
                  i);
    }
    rpc_auth_close(&a);
}

static enum message_role role_of(struct rpc_auth *a, const char *file)
{
    char key[RPC_KEY] = "";

    read_key(in_dir(file), key);
    return rpc_auth_role(a, key);
}

Test(keys, knows_the_role_of_each_key_and_reads_the_list_again)
{
    struct rpc_auth *a = open_auth();
    struct spec_error err = {""};

    cr_expect(eq(int, (int)role_of(a, "own/a1.key"), ROLE_AGENT));
    cr_expect(eq(int, (int)role_of(a, "own/view.key"), ROLE_VIEWER));
    cr_expect(eq(int, (int)role_of(a, "own/op.key"), ROLE_OPERATOR));
    cr_expect(eq(int, (int)role_of(a, "keys/server.key"), ROLE_NONE));
    cr_expect(eq(int, (int)rpc_auth_role(a, ""), ROLE_NONE));
    keygen("a2", ROLE_AGENT);
    unlink(in_dir("keys/allowed/a1.key"));
    cr_expect(eq(int, (int)role_of(a, "own/a2.key"), ROLE_NONE));
    cr_expect(eq(int, rpc_auth_reload(a, &err), 0), "%s", err.text);
    cr_expect(eq(int, (int)role_of(a, "own/a2.key"), ROLE_AGENT));
    cr_expect(eq(int, (int)role_of(a, "own/a1.key"), ROLE_NONE));
    rpc_auth_close(&a);
}

Test(keys, keeps_the_old_list_when_the_new_one_is_wrong)
{
    static const struct {
        const char *text;
        mode_t mode;
        int want;
        const char *says;
    } rows[] = {
        {"metadata\n    role = \"boss\"\ncurve\n    public-key = \"" GOOD_PUBLIC "\"\n", 0644,
         -EINVAL, "accepted: agent, operator, viewer"},
        {"curve\n    public-key = \"" GOOD_PUBLIC "\"\n", 0644, -EINVAL, "metadata/role"},
        {"metadata\n    role = \"agent\"\n", 0644, -EINVAL, "curve/public-key"},
        {"metadata\n    role = \"agent\"\ncurve\n    public-key = \"" GOOD_PUBLIC "\"\n", 0666,
         -EACCES, "others can write to it"},
        {"", 0644, -EINVAL, "no certificate"},
        {"metadata\n    role = \"viewer\"\ncurve\n    public-key = \"" GOOD_PUBLIC "\"\n", 0644, 0,
         ""},
    };
    struct rpc_auth *a = open_auth();

    write_file(in_dir("keys/allowed/notes.txt"), "not a key", 0644);
    write_file(in_dir("keys/allowed/.hidden.key"), "not a key", 0644);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spec_error err = {""};

        write_file(in_dir("keys/allowed/z.key"), rows[i].text, rows[i].mode);
        cr_expect(eq(int, rpc_auth_reload(a, &err), rows[i].want), "row %zu: %s", i, err.text);
        cr_expect(strstr(err.text, rows[i].says) != NULL, "row %zu: %s", i, err.text);
        if (rows[i].want < 0)
            cr_expect(strstr(err.text, "allowed/z.key: ") != NULL, "%s", err.text);
        cr_expect(eq(int, (int)role_of(a, "own/op.key"), ROLE_OPERATOR));
        unlink(in_dir("keys/allowed/z.key"));
    }
    rpc_auth_close(&a);
}

Test(keys, refuses_a_list_that_names_a_key_twice_or_that_others_may_change)
{
    struct rpc_auth *a = open_auth();
    struct spec_error err = {""};
    char key[RPC_KEY], text[256];

    read_key(in_dir("own/a1.key"), key);
    snprintf(text, sizeof text,
             "metadata\n    role = \"operator\"\ncurve\n    public-key = \"%s\"\n", key);
    write_file(in_dir("keys/allowed/again.key"), text, 0644);
    cr_expect(eq(int, rpc_auth_reload(a, &err), -EINVAL));
    cr_expect(strstr(err.text, "a1.key") && strstr(err.text, "again.key"), "%s", err.text);
    cr_expect(eq(int, (int)role_of(a, "own/a1.key"), ROLE_AGENT));
    unlink(in_dir("keys/allowed/again.key"));
    cr_assert(eq(int, chmod(in_dir("keys/allowed"), 0777), 0));
    cr_expect(eq(int, rpc_auth_reload(a, &err), -EACCES));
    cr_expect(strstr(err.text, "others can write") != NULL, "%s", err.text);
    rpc_auth_close(&a);
}

Test(keys, says_why_the_daemons_keys_cannot_be_used)
{
    struct rpc_auth *a = open_auth(), *second = NULL;
    struct spec_error err = {""};

    cr_expect(eq(int, rpc_auth_open(in_dir("keys"), &second, &err), -EBUSY), "%s", err.text);
    rpc_auth_close(&a);
    a = open_auth(); /* and once more */
    rpc_auth_close(&a);
    cr_assert(eq(int, chmod(in_dir("keys/server.key_secret"), 0644), 0));
    cr_expect(eq(int, rpc_auth_open(in_dir("keys"), &a, &err), -EACCES));
    cr_expect(strstr(err.text, "server.key_secret: others can read it") != NULL, "%s", err.text);
    cr_expect(eq(int, rpc_auth_open(in_dir("own"), &a, &err), -ENOENT));
    cr_expect(a == NULL);
}

/* ---- over sockets ---------------------------------------------------------------------------- */

static struct rpc_server *serve(enum rpc_server_kind kind, struct rpc_auth *a)
{
    struct spec_error err = {""};
    struct rpc_server *s = NULL;

    /* with keys any address will do */
    cr_assert(eq(int, rpc_server_open(kind, "tcp://0.0.0.0:*", a, false, 100, &s, &err), 0), "%s",
              err.text);
    return s;
}

static struct rpc_link *connect_as(const struct rpc_server *s, const struct rpc_identity *id,
                                   bool events)
{
    char endpoint[64];
    struct rpc_link_config cfg = {
        .endpoint = endpoint, .identity = id, .events = events, .queue = 100};
    struct spec_error err = {""};
    struct rpc_link *l = NULL;

    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%s",
             strrchr(rpc_server_endpoint(s), ':') + 1);
    cr_assert(eq(int, rpc_link_open(&cfg, &l, &err), 0), "%s", err.text);
    return l;
}

static bool wait_readable(void *socket, int ms)
{
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};

    return zmq_poll(&item, 1, ms) > 0;
}

static void send_empty(struct rpc_link *l, enum message_type type)
{
    struct message_header h = {.type = (uint16_t)type, .sequence = 1};
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_end(&j, '}');
    cr_expect(eq(int, rpc_link_send(l, &h, &j), 0));
    json_free(&j);
}

/* Wait until the server has refused somebody: by its key, or for having none. */
static struct rpc_counts wait_refused(struct rpc_server *s, uint64_t n)
{
    struct rpc_counts counts;
    int connection;

    for (;;) {
        while (rpc_server_gone(s, &connection))
            ;
        rpc_server_counts(s, &counts);
        if (counts.denied + counts.faults >= n)
            return counts;
        cr_assert(wait_readable(rpc_server_monitor(s), WAIT_MS), "nobody was refused");
    }
}

Test(keys, let_their_owners_in_with_their_roles)
{
    static const struct {
        const char *name;
        enum message_role role;
    } rows[] = {{"a1", ROLE_AGENT}, {"view", ROLE_VIEWER}, {"op", ROLE_OPERATOR}};
    struct rpc_auth *a = open_auth();
    struct rpc_server *s = serve(RPC_CLIENTS, a);
    struct spec_error err;

    for (size_t i = 0; i < 3; i++) {
        struct rpc_identity *id = identity(rows[i].name, rpc_auth_public_key(a));
        struct rpc_link *l = connect_as(s, id, false);
        char key[RPC_KEY], path[64];
        struct rpc_message m;

        snprintf(path, sizeof path, "own/%s.key", rows[i].name);
        read_key(in_dir(path), key);
        send_empty(l, MESSAGE_PING);
        while (!rpc_receive(s, &m))
            cr_assert(wait_readable(rpc_server_socket(s), WAIT_MS), "%s", rows[i].name);
        cr_expect(eq(int, (int)m.fault, MESSAGE_GOOD));
        cr_expect(eq(int, (int)m.role, (int)rows[i].role), "%s", rows[i].name);
        cr_expect(strcmp(m.key, key) == 0, "%s instead of %s", m.key, key);
        if (rows[i].role == ROLE_OPERATOR) { /* the role goes at once, the connection stays */
            unlink(in_dir("keys/allowed/op.key"));
            cr_assert(eq(int, rpc_auth_reload(a, &err), 0));
            send_empty(l, MESSAGE_PING);
            while (!rpc_receive(s, &m))
                cr_assert(wait_readable(rpc_server_socket(s), WAIT_MS));
            cr_expect(eq(int, (int)m.role, ROLE_NONE));
        }
        rpc_link_close(&l);
        rpc_identity_free(&id);
    }
    rpc_server_close(&s);
    rpc_auth_close(&a);
}

Test(keys, keep_out_who_is_not_in_the_list)
{
    struct rpc_auth *a = open_auth();
    struct rpc_server *s = serve(RPC_AGENTS, a);
    struct rpc_denial denial;
    struct rpc_identity *id;
    struct rpc_link *l;
    struct rpc_message m;
    struct spec_error err = {""};
    char key[RPC_KEY];

    cr_assert(eq(int, rpc_keygen(NULL, "stranger", ROLE_AGENT, NULL, in_dir("own"), &err), 0));
    id = identity("stranger", rpc_auth_public_key(a));
    read_key(in_dir("own/stranger.key"), key);
    cr_expect(eq(int, rpc_auth_denied(a, &denial), 0));
    for (uint64_t i = 1; i <= 3; i++) {
        l = connect_as(s, id, false);
        send_empty(l, MESSAGE_HELLO);
        cr_expect(eq(u64, wait_refused(s, i).denied, i));
        rpc_link_close(&l);
    }
    cr_expect(eq(int, rpc_receive(s, &m), 0), "no message came through");
    cr_assert(eq(int, rpc_auth_denied(a, &denial), 1));
    cr_expect(strcmp(denial.key, key) == 0, "%s", denial.key);
    cr_expect(strcmp(denial.address, "127.0.0.1") == 0, "%s", denial.address);
    cr_expect(strcmp(denial.socket, "agents") == 0);
    cr_expect(eq(u32, denial.tries, 3));
    cr_expect(eq(int, rpc_auth_denied(a, &denial), 0), "one word a minute");
    l = connect_as(s, id, false);
    wait_refused(s, 4);
    cr_expect(eq(int, rpc_auth_denied(a, &denial), 0), "one word a minute");
    rpc_link_close(&l);
    rpc_identity_free(&id);
    rpc_server_close(&s);
    rpc_auth_close(&a);
}

Test(keys, let_in_who_comes_again_after_being_added)
{
    struct rpc_auth *a = open_auth();
    struct rpc_server *s = serve(RPC_AGENTS, a);
    struct spec_error err = {""};
    struct rpc_identity *id;
    struct rpc_link *l;

    cr_assert(rename(in_dir("keys/allowed/a1.key"), in_dir("a1.key")) == 0);
    cr_assert(eq(int, rpc_auth_reload(a, &err), 0));
    id = identity("a1", rpc_auth_public_key(a));
    l = connect_as(s, id, false);
    wait_refused(s, 1);
    cr_assert(rename(in_dir("a1.key"), in_dir("keys/allowed/a1.key")) == 0);
    cr_assert(eq(int, rpc_auth_reload(a, &err), 0));
    rpc_link_close(&l);
    l = connect_as(s, id, false);
    send_empty(l, MESSAGE_HELLO);
    cr_expect(wait_readable(rpc_server_socket(s), WAIT_MS));
    rpc_link_close(&l);
    rpc_identity_free(&id);
    rpc_server_close(&s);
    rpc_auth_close(&a);
}

Test(keys, keep_out_who_has_none_or_has_the_wrong_one_of_the_server)
{
    struct rpc_auth *a = open_auth();
    struct rpc_server *s = serve(RPC_CLIENTS, a);
    struct rpc_identity *wrong = identity("op", GOOD_PUBLIC);
    struct rpc_link *plain = connect_as(s, NULL, false), *other;
    struct rpc_message m;
    uint64_t faults;

    send_empty(plain, MESSAGE_PING);
    faults = wait_refused(s, 1).faults;
    cr_expect(ge(u64, faults, 1));
    rpc_link_close(&plain);
    other = connect_as(s, wrong, false);
    send_empty(other, MESSAGE_PING);
    wait_refused(s, faults + 1);
    cr_expect(eq(int, rpc_receive(s, &m), 0));
    rpc_link_close(&other);
    rpc_identity_free(&wrong);
    rpc_server_close(&s);
    rpc_auth_close(&a);
}

static bool gets_events(struct rpc_server *s, const struct rpc_identity *id)
{
    struct rpc_link *l = connect_as(s, id, true);
    struct message_header h = {.type = MESSAGE_EVENT};
    struct rpc_counts counts = {0}, before;
    int connection;
    bool got = false;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_end(&j, '}');
    rpc_server_counts(s, &before);
    for (int i = 0; i < WAIT_MS / 10 && !got && counts.denied <= before.denied; i++) {
        h.sequence++;
        cr_expect(eq(int, rpc_send(s, NULL, &h, &j), 0));
        got = wait_readable(rpc_link_socket(l), 10);
        while (rpc_server_gone(s, &connection))
            ;
        rpc_server_counts(s, &counts);
    }
    json_free(&j);
    rpc_link_close(&l);
    return got;
}

Test(keys, open_the_event_stream_to_all_but_agents)
{
    static const struct {
        const char *name;
        bool want;
    } rows[] = {{"view", true}, {"a1", false}, {"op", true}};
    struct rpc_auth *a = open_auth();
    struct rpc_server *s = serve(RPC_EVENTS, a);
    struct rpc_denial denial;

    for (size_t i = 0; i < 3; i++) {
        struct rpc_identity *id = identity(rows[i].name, rpc_auth_public_key(a));

        cr_expect(eq(int, gets_events(s, id), rows[i].want), "%s", rows[i].name);
        rpc_identity_free(&id);
    }
    cr_expect(eq(int, rpc_auth_denied(a, &denial), 1));
    cr_expect(strcmp(denial.socket, "events") == 0);
    rpc_server_close(&s);
    rpc_auth_close(&a);
}
