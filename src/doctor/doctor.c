/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/doctor.h"

#include "base/available_memory.h"
#include "base/escape.h"
#include "base/files/subprocess.h"
#include "base/units.h"
#include "kernels/cpu/cpu.h"
#include "runtime/gpu/cudnn_attention.h"
#include "runtime/process/launcher_env.h"
#include "runtime/thread_affinity.h"

#define MBIT_PER_GBIT 1000.0
#define LOOK_S 60 /* time limit for checking a library */

const char *const lh_health_names[] = { "works", "absent", "fails", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_health_names) == LH_HEALTHS + 1);

/* Adds a row; takes over the strings. Text of files and libraries is shown on one line. */
static void
add_part(LhDoctor *d, const char *part, LhHealth health, char *found, const char *advice)
{
    const LhDoctorRow row = { .part = part,
                              .health = health,
                              .found = lh_escaped_line(found != NULL ? found : ""),
                              .advice = lh_escaped_line(advice) };

    g_free(found);
    g_array_append_val(d->rows, row);
}

/* Adds a row with a finding, or with the error that explains its absence; takes over both. */
static void
add_or_fail(LhDoctor *d, const char *part, char *found, GError *error)
{
    if (error == NULL)
        add_part(d, part, LH_HEALTH_WORKS, found, "");
    else
        add_part(d, part, LH_HEALTH_ABSENT, NULL, error->message);
    g_clear_error(&error);
}

/* ---- system files ---- */

/* The first line of @root@path without the spaces around it; NULL if it cannot be read. Caller
 * frees. */
static char *
read_first_line(const char *root, const char *path)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    char *text = NULL;

    if (!g_file_get_contents(whole, &text, NULL, NULL)) /* nocheck:read: /proc */
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    return g_strstrip(text);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, sorted; caller frees. */
static GPtrArray *
list_folder(const char *root, const char *path)
{
    g_autofree char *whole = g_strconcat(root, path, NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GDir *folder = g_dir_open(whole, 0, NULL);
    const char *name;

    while (folder != NULL && (name = g_dir_read_name(folder)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    if (folder != NULL)
        g_dir_close(folder);
    g_ptr_array_sort(names, compare_names);
    return names;
}

/* ---- machine ---- */

static void
look_at_processor(LhDoctor *d, const char *root)
{
    const uint32_t cores = lh_cores_count();
    const LhAvailableMemory room = lh_available_memory(root);
    g_autofree char *bytes = lh_format_bytes(room.memory.bytes);
    g_autofree char *clock =
        read_first_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    const bool fast = clock == NULL || strcmp(clock, "tsc") == 0 ||
                      strcmp(clock, "arch_sys_counter") == 0 || strcmp(clock, "kvm-clock") == 0;

    add_part(d, "cores", LH_HEALTH_WORKS,
             g_strdup_printf("%u, kernels for %s", cores, lh_cpu()->name),
             cores == 1 ? "ranks share one core, so measured times mean little" : "");
    add_part(d, "memory", LH_HEALTH_WORKS,
             room.memory.bytes == UINT64_MAX
                 ? g_strdup("unknown limit")
                 : g_strdup_printf("%s available (limit: %s)", bytes, room.memory.limit),
             "");
    add_part(d, "clock", LH_HEALTH_WORKS, g_strdup(clock != NULL ? clock : "unknown"),
             fast ? "" : "reading this clock takes about a microsecond, which distorts short ops");
}

static void
look_at_interface(LhDoctor *d, const char *root, const char *name)
{
    g_autofree char *state_path = g_strdup_printf("/sys/class/net/%s/operstate", name);
    g_autofree char *speed_path = g_strdup_printf("/sys/class/net/%s/speed", name);
    g_autofree char *state = read_first_line(root, state_path);
    g_autofree char *speed = read_first_line(root, speed_path);
    const bool down = state != NULL && strcmp(state, "down") == 0;
    g_autofree char *rate = NULL;
    guint64 mbit;

    if (speed != NULL && g_ascii_string_to_unsigned(speed, 10, 1, G_MAXINT32, &mbit, NULL))
        rate = g_strdup_printf("%g Gb/s", (double)mbit / MBIT_PER_GBIT);
    add_part(d, "network", down ? LH_HEALTH_ABSENT : LH_HEALTH_WORKS,
             g_strdup_printf("%s, %s, %s", name, rate != NULL ? rate : "rate unknown",
                             state != NULL ? state : "state unknown"),
             down ? "it is down: it carries no traffic until ip link set ... up" : "");
}

/* "mlx5_0 port 1, 400 Gb/sec (4X NDR), 4: ACTIVE". */
static void
look_at_port(LhDoctor *d, const char *root, const char *adapter, const char *port)
{
    g_autofree char *folder = g_strdup_printf("/sys/class/infiniband/%s/ports/%s", adapter, port);
    g_autofree char *rate_path = g_strconcat(folder, "/rate", NULL);
    g_autofree char *state_path = g_strconcat(folder, "/state", NULL);
    g_autofree char *rate = read_first_line(root, rate_path);
    g_autofree char *state = read_first_line(root, state_path);
    const bool active = state != NULL && strstr(state, "ACTIVE") != NULL;

    add_part(d, "infiniband", active ? LH_HEALTH_WORKS : LH_HEALTH_ABSENT,
             g_strdup_printf("%s port %s, %s, %s", adapter, port,
                             rate != NULL ? rate : "rate unknown",
                             state != NULL ? state : "state unknown"),
             active ? "" : "it is not active and carries no traffic; ibstat may show why");
}

static void
look_at_networks(LhDoctor *d, const char *root)
{
    g_autoptr(GPtrArray) names = list_folder(root, "/sys/class/net");
    g_autoptr(GPtrArray) adapters = list_folder(root, "/sys/class/infiniband");
    const guint before = d->rows->len;

    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

        if (strcmp(name, "lo") != 0 && strcmp(name, "bonding_masters") != 0)
            look_at_interface(d, root, name);
    }
    if (d->rows->len == before)
        add_part(d, "network", LH_HEALTH_ABSENT, NULL,
                 "this machine has only the loopback interface: all ranks must be on this machine");
    for (guint i = 0; i < adapters->len; i++) {
        const char *adapter = g_ptr_array_index(adapters, i);
        g_autofree char *folder = g_strdup_printf("/sys/class/infiniband/%s/ports", adapter);
        g_autoptr(GPtrArray) ports = list_folder(root, folder);

        for (guint k = 0; k < ports->len; k++)
            look_at_port(d, root, adapter, g_ptr_array_index(ports, k));
    }
}

/* ---- libraries ---- */

/*
 * Some libraries crash or end the process if they are loaded and something is missing. So each is
 * checked in a process of its own.
 */

/* Returns the child's answer, or an error such as "check of nccl was ended by signal 6 (Aborted):
 * ...". Caller frees. */
static char *
ask_child(const char *what, LhQuestion question, const void *data, GError **error)
{
    g_autofree char *name = g_strdup_printf("check of %s", what);

    return lh_subprocess_ask(name, question, data, LOOK_S, error);
}

enum {
    DRIVER_LINE = 'd',
    DEVICE_LINE = 'g',
    ERROR_LINE = 'e',
};

/* Lists the driver, each device, and errors, a line each; the first byte gives the kind of line. */
static char *
survey(const void *data, GError **error)
{
    g_autoptr(GPtrArray) devices = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) cause = NULL;
    g_autofree char *driver = NULL;
    GString *text = g_string_new(NULL);
    const bool ok = lh_device_cuda.survey(&driver, devices, &cause);

    (void)data;
    (void)error;
    if (driver != NULL)
        g_string_append_printf(text, "%c%s\n", DRIVER_LINE, g_strdelimit(driver, "\n", ' '));
    for (guint i = 0; i < devices->len; i++)
        g_string_append_printf(text, "%c%s\n", DEVICE_LINE,
                               g_strdelimit(g_ptr_array_index(devices, i), "\n", ' '));
    if (!ok)
        g_string_append_printf(text, "%c%s\n", ERROR_LINE, g_strdelimit(cause->message, "\n", ' '));
    return g_string_free(text, FALSE);
}

static void
look_at_devices(LhDoctor *d)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = ask_child("GPUs", survey, NULL, &error);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    const char *failing = "driver";

    for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        const char *line = lines[i] + 1;

        if (lines[i][0] == ERROR_LINE)
            add_part(d, failing, LH_HEALTH_ABSENT, NULL, line);
        else
            add_part(d, lines[i][0] == DRIVER_LINE ? "driver" : "device", LH_HEALTH_WORKS,
                     g_strdup(line), "");
        failing = "device";
    }
    if (error != NULL)
        add_part(d, failing, LH_HEALTH_ABSENT, NULL, error->message);
}

typedef struct {
    const char *part;
    char *(*describe)(GError **error);
} Library;

static char *
describe_library(const void *library, GError **error)
{
    return ((const Library *)library)->describe(error);
}

static void
look_at_libraries(LhDoctor *d)
{
    const Library libraries[] = {
        { "nccl", lh_links_nccl.describe },
        { "cudnn", lh_cudnn_library },
        { "mpi", lh_transport_mpi.describe },
    };

    for (guint i = 0; i < G_N_ELEMENTS(libraries); i++) {
        GError *error = NULL;
        char *found = ask_child(libraries[i].part, describe_library, &libraries[i], &error);

        add_or_fail(d, libraries[i].part, found, error);
    }
}

static void
look_at_programs(LhDoctor *d)
{
    static const struct {
        const char *name, *advice;
    } programs[] = {
        { "gnuplot", "figures are written as scripts, and drawn only if gnuplot is installed" },
        { "mpirun", "mpirun cannot start MPI processes here; srun may" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(programs); i++) {
        char *path = g_find_program_in_path(programs[i].name);

        add_part(d, programs[i].name, path != NULL ? LH_HEALTH_WORKS : LH_HEALTH_ABSENT, path,
                 path != NULL ? "" : programs[i].advice);
    }
}

/* ---- launcher ---- */

/* "torchrun: rank 3 of 8, rank 0 at node1, port 29501"; NULL with @error if the environment is
 * incomplete. Caller frees. */
static char *
describe_launch(const LhControl *control, GError **error)
{
    LhLauncherEnv launch;
    char *text;

    if (control == &lh_control_single)
        return g_strdup("single: one process has all ranks");
    if (control == &lh_control_mpi)
        return g_strdup("mpi: this process was started by an MPI launcher");
    if (!(control == &lh_control_slurm ? lh_launcher_env_slurm : lh_launcher_env_torchrun)(&launch,
                                                                                           error))
        return NULL;
    text = g_strdup_printf("%s: rank %u of %u, rank 0 at %s, port %u", control->name, launch.rank,
                           launch.size, launch.host, launch.port);
    lh_launcher_env_clear(&launch);
    return text;
}

static void
look_at_bootstrap(LhDoctor *d)
{
    const LhControl *control = lh_control_resolve(&lh_control_auto);
    g_autoptr(GError) error = NULL;
    char *text = describe_launch(control, &error);

    add_part(d, "bootstrap", text != NULL ? LH_HEALTH_WORKS : LH_HEALTH_FAILS,
             text != NULL ? text : g_strdup(control->name), error == NULL ? "" : error->message);
}

/* ---- backends ---- */

/* Whether a required library is available; @library returns its name; NULL: none is required. */
static bool
has_library(char *(*library)(GError **error), GError **error)
{
    g_autofree char *found = library == NULL ? NULL : library(error);

    return library == NULL || found != NULL;
}

/* How the backend would be launched, if all its requirements are met. */
static char *
check_backend(const void *data, GError **error)
{
    const LhBackend *backend = data;

    if ((backend->device->probe != NULL && !backend->device->probe(error)) ||
        (backend->transport != NULL && !has_library(backend->transport->describe, error)) ||
        (backend->links != NULL && !has_library(backend->links->describe, error)))
        return NULL;
    return describe_launch(lh_control_resolve(backend->control), error);
}

static void
look_at_backends(LhDoctor *d)
{
    for (guint i = 0; lh_backends[i] != NULL; i++) {
        LhDoctorBackend row = { .backend = lh_backends[i] };
        g_autofree char *what = g_strdup_printf("check of backend %s", row.backend->name);
        g_autoptr(GError) error = NULL;
        g_autofree char *launch = ask_child(what, check_backend, row.backend, &error);

        row.works = launch != NULL;
        row.why = lh_escaped_line(error != NULL ? error->message : "");
        g_array_append_val(d->backends, row);
    }
}

/* ---- interface ---- */

LhDoctor *
lh_doctor_new(const char *root)
{
    LhDoctor *d = g_new0(LhDoctor, 1);

    d->rows = g_array_new(FALSE, FALSE, sizeof(LhDoctorRow));
    d->backends = g_array_new(FALSE, FALSE, sizeof(LhDoctorBackend));
    look_at_processor(d, root);
    look_at_networks(d, root);
    look_at_devices(d);
    look_at_libraries(d);
    look_at_programs(d);
    look_at_bootstrap(d);
    look_at_backends(d);
    return d;
}

void
lh_doctor_free(LhDoctor *doctor)
{
    if (doctor == NULL)
        return;
    for (guint i = 0; i < doctor->rows->len; i++) {
        g_free(g_array_index(doctor->rows, LhDoctorRow, i).found);
        g_free(g_array_index(doctor->rows, LhDoctorRow, i).advice);
    }
    for (guint i = 0; i < doctor->backends->len; i++)
        g_free(g_array_index(doctor->backends, LhDoctorBackend, i).why);
    g_array_unref(doctor->rows);
    g_array_unref(doctor->backends);
    g_free(doctor);
}
