/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/launcher_env.h"

#include "base/error.h"
#include "program/program.h"

#include <string.h>

#define PORT_MAX 65535
/* Ports of Slurm jobs: above those of services, below Linux's ephemeral ports. */
#define SLURM_PORT_FIRST 15000
#define SLURM_PORTS 15000
#define SLURM_STEPS 16 /* concurrent job steps per node */
#define JOB_MAX UINT32_MAX

/* ---- variables ---- */

/* Reports the variable's value, or that it is not set, and what is allowed. */
static void
refuse_variable(const char *name, const char *allowed, GError **error)
{
    const char *text = g_getenv(name);

    if (text == NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s: this environment variable is not set; allowed: %s", name, allowed);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s: the environment variable is \"%s\"; allowed: %s", name, text, allowed);
}

/* A number in [@min, @max]. */
static bool
read_variable(const char *name, uint64_t min, uint64_t max, uint64_t *value, GError **error)
{
    const char *text = g_getenv(name);
    g_autofree char *allowed = NULL;

    if (text != NULL && g_ascii_string_to_unsigned(text, 10, min, max, value, NULL))
        return true;
    allowed =
        g_strdup_printf("a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, min, max);
    refuse_variable(name, allowed, error);
    return false;
}

/* Whether @text is a host name or address. */
static bool
is_host(const char *text)
{
    return text != NULL && text[0] != '\0' && text[0] != '-' &&
           strspn(text, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-._:") == strlen(text);
}

/* Reads the rank from @rank_name and the number of ranks from @size_name. */
static bool
read_place(LhLauncherEnv *launch, const char *rank_name, const char *size_name, GError **error)
{
    uint64_t rank, size;

    if (!read_variable(size_name, 1, LH_RANKS_MAX, &size, error) ||
        !read_variable(rank_name, 0, size - 1, &rank, error))
        return false;
    launch->rank = (uint32_t)rank;
    launch->size = (uint32_t)size;
    return true;
}

/* ---- the token ---- */

/* The hash of the number of ranks and of the variables @names; unset variables count as absent. */
static void
make_token(LhLauncherEnv *launch, const char *const *names)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree char *size = g_strdup_printf("longhaul %u", launch->size);
    gsize bytes = LH_TOKEN_BYTES;

    g_checksum_update(sum, (const guchar *)size, (gssize)strlen(size) + 1);
    for (; *names != NULL; names++) {
        const char *text = g_getenv(*names);

        g_checksum_update(sum, (const guchar *)*names, (gssize)strlen(*names) + 1);
        if (text != NULL)
            g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
    }
    g_checksum_get_digest(sum, launch->token, &bytes);
}

/* ---- torchrun ---- */

bool
lh_launcher_env_torchrun(LhLauncherEnv *launch, GError **error)
{
    static const char *const known[] = { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                         "MASTER_ADDR", "MASTER_PORT", NULL };
    const char *host = g_getenv("MASTER_ADDR");
    LhLauncherEnv found = { 0 };
    uint64_t port;

    /* torchrun itself listens at MASTER_PORT. */
    if (!read_place(&found, "RANK", "WORLD_SIZE", error) ||
        !read_variable("MASTER_PORT", 1, PORT_MAX - 1, &port, error))
        return false;
    if (!is_host(host)) {
        refuse_variable("MASTER_ADDR", "a host name or address", error);
        return false;
    }
    found.host = g_strdup(host);
    found.port = (uint16_t)(port + 1);
    make_token(&found, known);
    *launch = found;
    return true;
}

/* ---- Slurm ---- */

/* Length of the first item of a list: up to a comma outside brackets. */
static size_t
first_item(const char *list)
{
    bool within = false;
    size_t i = 0;

    while (list[i] != '\0' && (within || list[i] != ',')) {
        if (list[i] == '[')
            within = true;
        else if (list[i] == ']')
            within = false;
        i++;
    }
    return i;
}

char *
lh_launcher_env_first_host(const char *list)
{
    g_autofree char *item = g_strndup(list, first_item(list));
    g_autoptr(GString) host = g_string_new(NULL);

    /* Brackets hold numbers and ranges; the first number belongs to the first host. A name may have
     * several brackets. */
    for (const char *at = item; *at != '\0';) {
        size_t digits;
        const char *end;

        if (*at != '[') {
            g_string_append_c(host, *at++);
            continue;
        }
        digits = strspn(at + 1, G_CSET_DIGITS);
        end = strchr(at, ']');
        if (digits == 0 || end == NULL || strchr("-,]", at[digits + 1]) == NULL)
            return NULL;
        g_string_append_len(host, at + 1, (gssize)digits);
        at = end + 1;
    }
    return is_host(host->str) ? g_string_free(g_steal_pointer(&host), FALSE) : NULL;
}

bool
lh_launcher_env_slurm(LhLauncherEnv *launch, GError **error)
{
    static const char *const known[] = { "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST",
                                         NULL };
    const char *list = g_getenv("SLURM_STEP_NODELIST");
    LhLauncherEnv found = { 0 };
    uint64_t job, step;

    if (!read_place(&found, "SLURM_PROCID", "SLURM_NTASKS", error) ||
        !read_variable("SLURM_JOB_ID", 0, JOB_MAX, &job, error) ||
        !read_variable("SLURM_STEP_ID", 0, JOB_MAX, &step, error))
        return false;
    found.host = list == NULL ? NULL : lh_launcher_env_first_host(list);
    if (found.host == NULL) {
        refuse_variable("SLURM_STEP_NODELIST", "a list of hosts, such as node[01-04]", error);
        return false;
    }
    found.port = (uint16_t)(SLURM_PORT_FIRST + (job * SLURM_STEPS + step) % SLURM_PORTS);
    make_token(&found, known);
    *launch = found;
    return true;
}

void
lh_launcher_env_clear(LhLauncherEnv *launch)
{
    g_free(launch->host);
    *launch = (LhLauncherEnv){ 0 };
}
