{{/* Variables of single kinds of services */}}
{{- define "evenflow.apiEnv" -}}
- {name: EVENFLOW_API_HOST, value: "0.0.0.0"}
- {name: EVENFLOW_API_PORT, value: "8974"}
{{- end }}

{{- define "evenflow.workerEnv" -}}
- {name: EVENFLOW_SLOTS, value: {{ .slots | quote }}}
- {name: EVENFLOW_QUEUES, value: {{ join "," .queues | quote }}}
{{- end }}

{{- define "evenflow.launcherEnv" -}}
- {name: EVENFLOW_KUBERNETES_TEMPLATE, value: /etc/evenflow/pods/pod.yaml}
{{- with .Values.launchers.broker.existingSecret }}
{{ include "evenflow.fromSecret" (dict "variable" "EVENFLOW_CELERY_BROKER" "name" . "key" $.Values.launchers.broker.key) }}
{{- end }}
{{- end }}

{{- define "evenflow.tryPod" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    app.kubernetes.io/name: evenflow
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/component: try
  annotations:
    evenflow/secrets: {{ join "," .Values.launchers.secrets | quote }}
    evenflow/claims: {{ join "," .Values.launchers.claims | quote }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 60
  securityContext: {{- include "evenflow.podSecurity" . | nindent 4 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: try
      image: {{ include "evenflow.image" (dict "root" . "given" dict) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - {name: EVENFLOW_SANDBOX, value: {{ .Values.sandbox | quote }}}
        {{- if .Values.tls.existingSecret }}
        - {name: EVENFLOW_TLS_CA, value: /etc/evenflow/tls/ca.crt}
        {{- end }}
        - {name: EVENFLOW_XCOM_URL, value: "{{ default "file:///var/lib/evenflow/shared" .Values.storage.url }}/results"}
        {{- with .Values.env }}{{ toYaml . | nindent 8 }}{{ end }}
      resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}
      securityContext: {{- include "evenflow.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - {name: home, mountPath: /var/lib/evenflow}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.tls.existingSecret }}
        - {name: ca, mountPath: /etc/evenflow/tls, readOnly: true}
        {{- end }}
        {{- if .Values.storage.existingClaim }}
        - {name: shared, mountPath: /var/lib/evenflow/shared}
        {{- end }}
  volumes:
    - {name: home, emptyDir: {}}
    - {name: tmp, emptyDir: {}}
    {{- if .Values.tls.existingSecret }}
    - {name: ca, secret: {secretName: {{ .Values.tls.existingSecret | quote }}, items: [{key: ca.crt, path: ca.crt}]}}
    {{- end }}
    {{- if .Values.storage.existingClaim }}
    - {name: shared, persistentVolumeClaim: {claimName: {{ .Values.storage.existingClaim | quote }}}}
    {{- end }}
{{- end }}
