/* standalone_main.c - runs a fuzz target over files and folders of files, without libFuzzer
 *
 * So the seeds of the corpus are tests with every compiler, and a crash that libFuzzer wrote to
 * a file can be run under a debugger.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
}

static void run_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1); /* no byte too many: reading beyond must be seen */

    if (!f || !data || fread(data, 1, size, f) != size)
        fail(path);
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
}

static void run(const char *path)
{
    struct stat st;
    struct dirent *entry;
    DIR *dir;

    if (stat(path, &st) < 0)
        fail(path);
    if (!S_ISDIR(st.st_mode)) {
        run_file(path, (size_t)st.st_size);
        return;
    }
    dir = opendir(path);
    if (!dir)
        fail(path);
    while ((entry = readdir(dir))) {
        char child[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        run(child);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run(argv[i]);
    printf("%lu inputs\n", inputs);
    return inputs ? 0 : 1;
}
