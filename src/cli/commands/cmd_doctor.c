/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul doctor: reports which backends work on this machine, and why others do not.
 */
#include "cli/command.h"
#include "report/text/cluster/describe_doctor.h"

#include <stddef.h>

typedef struct {
    LhOutputOptions to;
    int backend; /* index of lh_backends */
} DoctorOptions;

static const LhField doctor_options[] = {
    LH_OPTION_FORMAT(DoctorOptions, to),
    LH_OPTION_OUTPUT(DoctorOptions, to),
    LH_OPTION_BACKEND(DoctorOptions, backend,
                      "Backend of longhaul run that must work; default cpu, which always does."),
    { .name = NULL },
};

static void
print_doctor(LhFormat format, const LhDoctor *doctor, GString *out)
{
    g_autoptr(LhTable) parts = lh_describe_machine_parts(doctor);
    g_autoptr(LhTable) backends = lh_describe_backends(doctor);

    lh_table_print(parts, format, out);
    if (format == LH_FORMAT_CSV)
        return;
    g_string_append_c(out, '\n');
    lh_table_print(backends, format, out);
}

static LhAnswer
run_doctor(const LhCommandLine *line, GError **error)
{
    const DoctorOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhDoctor) doctor = lh_doctor_new("");
    g_autoptr(GString) out = g_string_new(NULL);
    const bool ok = g_array_index(doctor->backends, LhDoctorBackend, o->backend).works;

    if (o->to.format == LH_FORMAT_JSON)
        lh_doctor_json(doctor, ok, &stamp, out);
    else
        print_doctor((LhFormat)o->to.format, doctor, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ANSWER_FAILED;
    return ok ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_doctor = {
    .name = "doctor",
    .arguments = "[OPTIONS]",
    .summary = "Report which backends work on this machine, and why others do not.",
    .details = "Checks this machine's processor, memory, clock and networks, its GPUs and their\n"
               "driver, NCCL, cuDNN and MPI, and the launcher. Then lists which backends of\n"
               "longhaul run work and, for the others, the reason and the remedy. It starts\n"
               "nothing and changes nothing. Exit status 1 if the backend given by --backend\n"
               "does not work.\n\n"
               "  longhaul doctor\n"
               "  longhaul doctor --backend nccl --format json\n"
               "  srun -N 2 --ntasks-per-node 8 longhaul doctor --backend nccl\n",
    .options = doctor_options,
    .options_size = sizeof(DoctorOptions),
    .run = run_doctor,
};
