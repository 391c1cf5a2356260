/* manifest.c - any bytes as the manifest of a checkpoint and of a run
 *
 * What can be read is written again, and reads the same. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/manifest.h"
#include "store/directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/pliant-fuzz-manifest-XXXXXX";

static void clean_up(void)
{
    directory_remove(dir);
}

/* A run with two checkpoints; it stays for all inputs. */
static void make_run(void)
{
    static const char *const names[] = {"c1", "c2"};
    char path[128];

    if (dir[sizeof dir - 2] != 'X' || !mkdtemp(dir))
        return;
    atexit(clean_up);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        directory_make(path);
    }
}

static void put(const uint8_t *data, size_t size)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE);
    out = fopen(path, "w");
    if (!out || fwrite(data, 1, size, out) != size || fclose(out) != 0)
        abort();
}

static void again(const struct json *j)
{
    struct spec_error err;

    if (j->error || manifest_replace(dir, j, &err) < 0)
        abort();
}

static void as_checkpoint(void)
{
    struct manifest_read *first, *second;
    struct spec_error err = {""};
    struct json j;
    int r = manifest_open(dir, &first, &err);

    if (r < 0) {
        if (r != -EUCLEAN || !*err.text)
            abort();
        return;
    }
    json_init(&j, NULL);
    manifest_write(&j, manifest_of(first));
    again(&j);
    if (manifest_open(dir, &second, &err) < 0 ||
        manifest_of(second)->n_parts != manifest_of(first)->n_parts ||
        manifest_of(second)->id != manifest_of(first)->id)
        abort();
    json_free(&j);
    manifest_close(&first);
    manifest_close(&second);
}

static void as_run(void)
{
    struct run_manifest first, second;
    struct spec_error err = {""};
    struct json j;
    int r = run_read(dir, &first, &err);

    if (r < 0) {
        if (r != -EUCLEAN || !*err.text)
            abort();
        return;
    }
    json_init(&j, NULL);
    run_write(&j, &first);
    again(&j);
    if (run_read(dir, &second, &err) < 0 || second.results.n != first.results.n)
        abort();
    for (size_t i = 0; i < first.results.n; i++)
        if (strcmp(first.results.v[i].dir, second.results.v[i].dir) != 0)
            abort();
    json_free(&j);
    run_free(&first);
    run_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_run();
    put(data, size);
    as_checkpoint();
    put(data, size);
    as_run();
    return 0;
}
